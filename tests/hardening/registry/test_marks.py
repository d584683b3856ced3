"""What the publisher's role writes into marks is data: no command of anybody's fails by a text that is none of the program's."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.cli.main import exit_code
from eventlog.sources.marks import CURRENT_AT, NOT_FOLLOWED, OUTPUTS, PACE, SEEN, SERVED, TRACKED, VERIFIED
from tests.integration.publishing import url_of
from tests.support.logged import run

COMMANDS = (("check",), ("triggers",), ("status",), ("log",), ("outputs", "list"), ("track", "usr"), ("refresh", "usr"))


@pytest.mark.parametrize("value", ["no json", "{}", "[1]", "[" * 10_000])
def test_no_command_fails_by_a_mark(engine: Engine, capsys: pytest.CaptureFixture[str], value: str) -> None:
    install(engine)
    run(engine, "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40))")
    track(engine, ["usr"])
    for name in (CURRENT_AT, NOT_FOLLOWED, OUTPUTS, PACE, SEEN, SERVED, TRACKED, VERIFIED):
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM event_log_mark WHERE name = :name"), {"name": name})
            statement = text("INSERT INTO event_log_mark (name, value) VALUES (:name, :value)")
            connection.execute(statement, {"name": name, "value": value})
    for command in COMMANDS:
        code = exit_code([*command, "--database", url_of(engine)])
        said = capsys.readouterr()
        assert "fault of eventlog" not in said.out + said.err, (command, said)
        assert code != 70, (command, said)
