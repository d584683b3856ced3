"""What a publisher says that it saw of tables is data: the owner's numbers and decisions come from what the owner entered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.capture.installed import history
from eventlog.capture.track import track, trigger_states
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TrackRequest, TriggerOptions
from tests.conformance.event_logs import LogTable
from tests.hardening.registry.people import documents
from tests.integration.publishing import config_of
from tests.support.logged import run

USR = "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40), secret VARCHAR(40))"
LARGEST = 2**31 - 1
TABLE = {"name": "usr", "columns": [{"name": "idu", "type": "INTEGER", "key": 1}, {"name": "secret", "type": "TEXT"}]}
SAID = (
    "{}",
    json.dumps({"place": -1, "table": TABLE, "image": ["secret", "fname"]}),
    json.dumps({"place": 10**18, "table": TABLE, "image": ["secret", "fname"]}),
    json.dumps({"place": 10**18, "table": {**TABLE, "images": True}, "former": "nobody", "unlogged_from": 0}),
)


@pytest.fixture
def usr(engine: Engine) -> str:
    """A tracked table with images and an excluded column; its name as the history has it."""
    install(engine)
    run(engine, USR)
    track(engine, ["usr"], TriggerOptions(style=Style.IMAGE, exclude=("secret",)))
    with engine.connect() as connection:
        return str(connection.execute(text("SELECT MIN(table_name) FROM event_log_schema")).scalar_one())


def see(engine: Engine, table: str, number: int, described: str = "{}") -> None:
    """Enters what the publisher's role may enter."""
    entered = (
        "INSERT INTO event_log_seen (table_name, table_version, seen_at, first_record, definition, described)"
        " VALUES (:name, :number, '2030-01-01', 0, '{\"idu\": \"INTEGER\"}', :described)"
    )
    with engine.begin() as connection:
        connection.execute(text(entered), {"name": table, "number": number, "described": described})


def numbers(engine: Engine, table: str = "event_log_schema") -> list[int]:
    with engine.connect() as connection:
        query = f"SELECT table_version FROM {table} ORDER BY table_version"
        return [int(number) for number in connection.execute(text(query)).scalars()]


@pytest.mark.parametrize("described", SAID, ids=["nothing", "before all", "after all", "images"])
@pytest.mark.parametrize("number", [2, LARGEST])
def test_no_number_of_a_publishers_is_in_the_owners_way(
    engine: Engine, usr: str, tmp_path: Path, number: int, described: str
) -> None:
    see(engine, usr, number, described)
    track(engine, ["usr"])
    assert numbers(engine) == [1]
    track(engine, ["usr"], TrackRequest(reset=True, style=Style.IMAGE, columns=("fname",)))
    run(engine, "ALTER TABLE usr ADD COLUMN lname VARCHAR(40)")
    track(engine, ["usr"], TrackRequest(reset=True, style=Style.IMAGE, exclude=("secret",)))
    assert numbers(engine) == [1, 2]
    assert {str(state.state) for state in trigger_states(engine)} == {"CURRENT"}
    run(engine, "INSERT INTO usr VALUES (1, 'Ann', 's3cret', 'Lee')")
    published = documents(config_of(engine, tmp_path / "out"))
    assert [word in published for word in ("Ann", "Lee", "s3cret")] == [True, True, False]
    assert {*LogTable(engine).statuses().values()} == {"S"}


def test_what_a_publisher_sees_has_numbers_of_its_own(engine: Engine, usr: str, tmp_path: Path) -> None:
    track(engine, ["usr"], TrackRequest(reset=True))
    entered = numbers(engine)
    see(engine, usr, LARGEST)
    run(engine, "ALTER TABLE usr ADD COLUMN lname VARCHAR(40)", "INSERT INTO usr VALUES (1, 'Ann', 's', 'Lee')")
    assert "Lee" in documents(config_of(engine, tmp_path / "out"))
    assert numbers(engine, "event_log_seen") == [1, LARGEST]
    track(engine, ["usr"])
    assert numbers(engine) == [*entered, entered[-1] + 1]
    # People count all that are known.
    known = history(engine, LogNames(), ["usr"])
    assert [version.version for version in known] == [*range(1, len(entered) + 4)]
