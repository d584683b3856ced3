"""`eventlog verify` beside an output that lags: its rows wait in the log, and are over for the others."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine

from eventlog.core.errors import SinkError
from eventlog.sinks.change_files.sink import ChangeTableFiles
from eventlog.sql.dialect import dialect_of
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.verify.objects import Objects
from tests.integration.test_verify import Circle
from tests.support.servers import databases


@pytest.fixture(params=databases())
def source(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.mark.in_turn
def test_what_waits_for_another_output_only_hides_no_difference(
    source: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    circle = Circle(source, source, tmp_path, capsys, key="number")
    circle.write(60)
    circle.publish()
    assert circle.command("outputs", "pause", "files")[0] == 0
    with source.begin() as connection:
        connection.execute(circle.table.update().values(size=4711))
    circle.publish()
    for held in (["--output", "lake"], ["--output", "lake", "--mirrors"]):
        code, told = circle.verify(*held, "--wait", "0")
        assert (code, told["waiting"], told["problem"]) == (0, 0, None), told
    code, told = circle.verify("--output", "files", "--wait", "0")
    assert (code, told["value"]) == (0, 0), told
    assert told["waiting"] == told["rows"] > 0
    circle.plant(8)
    code, told = circle.verify("--output", "lake", "--mirrors", "--wait", "0")
    assert (code, told["waiting"]) == (1, 0), told
    assert told["missing"] + told["value"] + told["extra"] == 8
    assert circle.command("outputs", "resume", "files")[0] == 0
    circle.publish()
    assert circle.verify("--output", "files", "--wait", "0")[1]["waiting"] == 0


@pytest.mark.in_turn
def test_a_publisher_that_works_between_two_statements_of_verify_hides_nothing(
    source: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that it seals, and has on their way to one output, have not arrived at another one that is paused."""
    if dialect_of(source).embedded:
        pytest.skip("nobody publishes while another transaction reads")
    circle = Circle(source, source, tmp_path, capsys, key="number")
    circle.write(20)
    circle.publish()
    assert circle.command("outputs", "pause", "lake")[0] == 0
    engine = sa.create_engine(source.url)
    objects = Objects(Log(engine, LogNames()), ("usr",), "lake")
    statements = 0

    def failed(*_: object) -> NoReturn:
        raise SinkError("The disk is full.")

    def publish(*_: object) -> None:
        nonlocal statements
        statements += 1
        if statements == step:
            with monkeypatch.context() as patched:
                patched.setattr(ChangeTableFiles, "commit", failed)
                circle.command("run", "--once")

    sa.event.listen(engine, "before_cursor_execute", publish)
    step = 0
    try:
        while step <= statements:
            step, statements = step + 1, 0
            with source.begin() as connection:
                connection.execute(circle.table.insert().values(id=1000 + step, size=step))
            assert f"id={1000 + step}" in objects.waiting(), f"published before statement {step}"
            circle.command("run", "--once")
    finally:
        engine.dispose()
    assert step > 5
