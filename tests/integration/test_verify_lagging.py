"""`eventlog verify` beside an output that lags: its rows wait in the log, and are over for the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

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
