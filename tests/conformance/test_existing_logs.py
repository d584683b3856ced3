"""Logs that somebody else made, for the commercial driver: companions stand beside them, nothing in them is altered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from sqlalchemy import Engine, inspect, text

import eventlog
from eventlog.admin.purge import Purge, purge
from eventlog.admin.rows import Choice, hold, release, rows
from eventlog.config.settings import Config, FilesOutput, PublisherConfig, SourceConfig
from eventlog.sql.dialect import dialect_of
from eventlog.sql.install import install, uninstall
from eventlog.sql.log import Log
from eventlog.sql.names import NEW_ORDER, OLD_ORDER, STANDARD, LogNames
from eventlog.sql.reflect import log_columns

FREE = ("id", "state", "kind", "at", "who", "tab", "pk", "col", "was", "is_now")
"""Names that say nothing, in the order of STANDARD."""

ROWS = (
    {"record_id": 10, "event_type": 1, "table_key": "idu=1", "column_name": "fname", "new_value": "Jack"},
    {"record_id": 11, "event_type": 1, "table_key": "IDU= 1", "column_name": "lname", "new_value": "Frost"},
    {"record_id": 12, "event_type": 6, "table_key": "idu=2"},
    {"record_id": 13, "event_type": 4, "table_key": "idu=3"},
    {"record_id": 14, "event_type": 9, "table_key": "idu=1"},
    {"record_id": 15, "event_type": 1, "table_key": "idu=1", "column_name": "fname", "perpetrator": "idm"},
    {"record_id": 16, "event_type": 4, "table_key": "idu=1", "status": "X"},
)
ENDS = {10: "S", 11: "S", 12: "S", 13: "S", 14: "E", 15: "S", 16: "X"}


class Existing(Struct, frozen=True, kw_only=True):
    """A log as somebody made it. `names` are its columns in the order of STANDARD, `order` is where they stand."""

    table: str = "indirect_process"
    names: tuple[str, ...] = STANDARD
    order: tuple[str, ...] = NEW_ORDER
    types: Mapping[str, str] = {}
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    key: bool = True
    columns: str | tuple[str, ...] = "auto"

    def name(self, standard: str) -> str:
        return self.names[STANDARD.index(standard)]


CASES = {
    "new order": Existing(),
    "old order": Existing(order=OLD_ORDER),
    "some other order": Existing(order=tuple(reversed(STANDARD))),
    "free names, new order": Existing(names=FREE),
    "free names, old order": Existing(names=FREE, order=OLD_ORDER),
    "free names, order said": Existing(names=FREE, order=OLD_ORDER, columns="old"),
    "free names, listed": Existing(names=FREE, order=tuple(sorted(STANDARD)), columns=FREE),
    "upper-case names": Existing(table="EVENTLOG", names=tuple(name.upper() for name in STANDARD)),
    "mixed names that need quotes": Existing(table="Event Log", names=("Id", "St", *FREE[2:-1], "New Value")),
    "a date": Existing(types={"event_time": "DATE"}),
    "a time of day without parts of a second": Existing(types={"event_time": "TIMESTAMP(0)"}),
    "a time with a zone": Existing(types={"event_time": "TIMESTAMP WITH TIME ZONE"}),
    "numbers with a scale of nothing": Existing(types={"record_id": "NUMERIC(19,0)", "event_type": "NUMERIC(2)"}),
    "further columns": Existing(after=("note_of_ours VARCHAR(9) DEFAULT 'ours'", "shard INTEGER DEFAULT 7")),
    "further columns in front": Existing(before=("shard INTEGER DEFAULT 7",)),
    "no key": Existing(key=False),
    "short texts": Existing(types={"table_key": "CHAR(12)", "table_name": "CHAR(9)", "status": "VARCHAR(3)"}),
}
SQLITE_TYPES = {"event_time": "DATETIME"}
TYPES = {
    "record_id": "BIGINT",
    "status": "CHAR(1)",
    "event_type": "INTEGER",
    "event_time": "TIMESTAMP",
    "perpetrator": "VARCHAR(30)",
    "table_name": "VARCHAR(64)",
    "table_key": "VARCHAR(255)",
    "column_name": "VARCHAR(64)",
    "old_value": "VARCHAR(2000)",
    "new_value": "VARCHAR(2000)",
}


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=list(CASES))
def existing(request: pytest.FixtureRequest, engine: Engine) -> Existing:
    found = CASES[request.param]
    _make(engine, found)
    return found


def _make(engine: Engine, existing: Existing) -> None:
    quote = dialect_of(engine).quoted
    embedded = SQLITE_TYPES if dialect_of(engine).embedded else {}
    types = {**TYPES, **embedded, **existing.types}
    own = [f"{quote(existing.name(standard))} {types[standard]}" for standard in existing.order]
    key = [f"PRIMARY KEY ({quote(existing.name('record_id'))})"] if existing.key else []
    parts = ", ".join([*existing.before, *own, *existing.after, *key])
    with engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE {quote(existing.table)} ({parts})"))
        connection.execute(text("CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname VARCHAR(64), lname VARCHAR(64))"))
        connection.execute(text("INSERT INTO usr VALUES (2, 'John', 'Doe')"))
        for row in ROWS:
            _write(connection, existing, quote, {"status": "N", "event_time": "2025-03-23", "table_name": "usr"} | row)


def _write(connection: Any, existing: Existing, quote: Any, row: dict[str, Any]) -> None:
    columns = ", ".join(quote(existing.name(standard)) for standard in row)
    values = ", ".join(f":{standard}" for standard in row)
    connection.execute(text(f"INSERT INTO {quote(existing.table)} ({columns}) VALUES ({values})"), row)


def shape(engine: Engine, existing: Existing) -> Any:
    """Everything that the database tells of the table, and every cell of it but the letters."""
    inspector = inspect(engine)
    columns = [
        (column["name"], str(column["type"]), column["default"]) for column in inspector.get_columns(existing.table)
    ]
    rest = (inspector.get_indexes, inspector.get_check_constraints, inspector.get_unique_constraints)
    quote = dialect_of(engine).quoted
    kept = ", ".join(quote(name) for name, *_ in columns if name != existing.name("status"))
    with engine.connect() as connection:
        cells = sorted(map(str, connection.execute(text(f"SELECT {kept} FROM {quote(existing.table)}"))))
    return columns, inspector.get_pk_constraint(existing.table), [ask(existing.table) for ask in rest], cells


def statuses(engine: Engine, existing: Existing) -> dict[int, str]:
    quote = dialect_of(engine).quoted
    columns = f"{quote(existing.name('record_id'))}, {quote(existing.name('status'))}"
    with engine.connect() as connection:
        found = connection.execute(text(f"SELECT {columns} FROM {quote(existing.table)} ORDER BY 1"))
        return {int(number): str(status) for number, status in found}


@pytest.fixture
def publisher(engine: Engine, existing: Existing, tmp_path: Path) -> Iterator[eventlog.Publisher]:
    """A publisher as a user makes one, from a configuration."""
    names = LogNames(table=existing.table)
    install(engine, log_columns(engine, names, existing.columns) if existing.columns != "auto" else names)
    source = SourceConfig(
        url=engine.url.render_as_string(hide_password=False),
        log=existing.table,
        columns=existing.columns,  # type: ignore[arg-type]  # auto, new, old or a list
        user="idm",
        tables=("usr",),
    )
    output = (FilesOutput(path=str(tmp_path / "out")),)
    config = Config(source=source, publisher=PublisherConfig(batch_size=128), output=output)
    with eventlog.Publisher(config) as found:
        yield found


def test_it_is_published_and_nothing_in_it_is_altered(
    engine: Engine, existing: Existing, publisher: eventlog.Publisher, tmp_path: Path
) -> None:
    before = shape(engine, existing)
    publisher.run_once()
    assert statuses(engine, existing) == ENDS
    (document,) = (path.read_text() for path in (tmp_path / "out").glob("*.xml"))
    for part in ('<add class-name="usr" event-id="10-11">', "Jack", "Frost", 'event-id="12"', "Doe", "<delete"):
        assert part in document
    assert 'event-id="16"' not in document
    assert shape(engine, existing) == before


def test_row_care_works_on_it(engine: Engine, existing: Existing, publisher: eventlog.Publisher) -> None:
    log = Log(engine, log_columns(engine, LogNames(table=existing.table), existing.columns))
    assert hold(log, [(10, 11)]) == 2
    publisher.run_once()
    assert statuses(engine, existing) == ENDS | dict.fromkeys((10, 11, 14, 15), "N")  # of one object
    assert release(log, [(1, 99)]) == 2
    publisher.run_once()
    found = rows(log, Choice(letters="E"), limit=9, width=9)
    assert [(row.record_id, row.reason) for row in found] == [(14, "invalid")]
    *_, done = purge(log, Purge(age=1, letters="S"))
    assert done.rows == 5
    assert statuses(engine, existing) == {14: "E", 16: "X"}


def test_uninstalling_leaves_it_as_it_was(engine: Engine, existing: Existing, publisher: eventlog.Publisher) -> None:
    before = shape(engine, existing)
    names = log_columns(engine, LogNames(table=existing.table), existing.columns)
    uninstall(engine, names, purge=True)
    assert shape(engine, existing) == before
    assert set(inspect(engine).get_table_names()) == {existing.table, "usr"}
