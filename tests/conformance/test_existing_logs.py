"""Logs that somebody else made, for the commercial driver: companions stand beside them, nothing in them is altered, and
what is published is what the driver's documentation promises, wherever and by whose clock they were written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, text

import eventlog
from eventlog.capture.install import install, uninstall
from eventlog.care.listing import Filters, newest
from eventlog.care.rows import hold, release
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.purge.deleting import Purge, purge
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.dialect import dialect_of
from eventlog.sql.findlog import log_columns
from eventlog.sql.log import Log
from eventlog.version import VERSION
from tests.conformance import adopted
from tests.conformance.adopted import CASES, LAYOUTS, SCHEMA, Existing, shape, statuses
from tests.support.servers import databases

GOLDEN = Path(__file__).parents[1] / "golden" / "adopted"

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


@pytest.fixture(params=list(CASES))
def existing(request: pytest.FixtureRequest, engine: Engine) -> Existing:
    found = CASES[request.param]
    adopted.make(engine, found)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname VARCHAR(64), lname VARCHAR(64))"))
        connection.execute(text("INSERT INTO usr VALUES (2, 'John', 'Doe')"))
        for row in _rows(engine):
            usual = {"status": "N", "event_time": "2025-03-23", "table_name": "usr"}
            adopted.write(connection, found, usual | row)
    return found


def _rows(engine: Engine) -> list[dict[str, Any]]:
    """Return the rows; with keys in lower case if names differ by case: other letters would be another column."""
    same = dialect_of(engine).case_sensitive
    return [{**row, "table_key": str(row["table_key"]).lower()} if same else dict(row) for row in ROWS]


def publisher_of(
    engine: Engine, existing: Existing, *outputs: FilesOutput, tables: tuple[str, ...], **settings: Any
) -> eventlog.Publisher:
    """Make a publisher from a configuration, as a user does."""
    names = existing.whole(engine)
    install(engine, log_columns(engine, names, existing.columns))
    source = SourceConfig(
        url=engine.url.render_as_string(hide_password=False),
        log=names.whole,
        schema=existing.schema,
        columns=existing.columns,  # type: ignore[arg-type]  # auto, new, old or a list
        clock=existing.clock,
        user="idm",
        tables=tables,
    )
    return eventlog.Publisher(
        Config(source=source, publisher=PublisherConfig(batch_size=128, **settings), output=outputs)
    )


@pytest.fixture
def publisher(engine: Engine, existing: Existing, tmp_path: Path) -> Iterator[eventlog.Publisher]:
    output = FilesOutput(path=str(tmp_path / "out"))
    with publisher_of(engine, existing, output, tables=("usr",)) as found:
        yield found


@pytest.mark.in_turn
def test_it_is_published_cared_for_and_left_as_it_was(
    engine: Engine, existing: Existing, publisher: eventlog.Publisher, tmp_path: Path
) -> None:
    before = shape(engine, existing)
    names = log_columns(engine, existing.whole(engine), existing.columns)
    log = Log(engine, names)
    assert hold(log, [(10, 11)]).rows == 2
    publisher.run_once()
    assert statuses(engine, existing) == ENDS | dict.fromkeys((10, 11, 14, 15), "N")  # of one object
    assert release(log, [(1, 99)]) == 2
    publisher.run_once()
    assert statuses(engine, existing) == ENDS
    told = "".join(path.read_text() for path in (tmp_path / "out").glob("*.xml"))
    for part in ('<add class-name="usr" event-id="10-11">', "Jack", "Frost", 'event-id="12"', "Doe", "<delete"):
        assert part in told
    assert 'event-id="16"' not in told
    assert [(row.record_id, row.reason) for row in newest(log, Filters(statuses="E"), limit=9, width=9)] == [
        (14, "invalid")
    ]
    assert shape(engine, existing) == before
    *_, done = purge(log, Purge(age=1, statuses="S"))
    assert done.rows == 5
    assert statuses(engine, existing) == {14: "E", 16: "X"}
    uninstall(engine, names, purge=True)
    assert set(inspect(engine).get_table_names()) == {existing.table, "usr"}
    assert shape(engine, existing)[:-1] == before[:-1], "all but its rows"


DOCUMENTED_ENDS = 17 * "S" + "WSSXS"
"""What becomes of the documented rows, in their order."""


@pytest.fixture(params=[(one, name) for one in databases() for name in LAYOUTS], ids="-".join)
def documented(request: pytest.FixtureRequest) -> tuple[Engine, Existing]:
    """Make a log in a documented layout with its tables and rows; skip a sequence on databases without any."""
    database, name = request.param
    existing = LAYOUTS[name]
    if existing.numbered == "by a sequence" and database in ("sqlite", "mysql"):
        pytest.skip("the database has no sequences")
    engine: Engine = request.getfixturevalue(database)
    adopted.make_tables(engine)
    adopted.make(engine, existing)
    adopted.write_documented(engine, existing)
    return engine, existing


def test_documents_are_those_that_the_documentation_promises(
    documented: tuple[Engine, Existing], tmp_path: Path
) -> None:
    """In every layout, on every database and by every clock the same bytes, for the moments are the same."""
    engine, existing = documented
    before = shape(engine, existing)
    outputs = (
        FilesOutput(path=str(tmp_path / "xds")),
        FilesOutput(path=str(tmp_path / "ct"), format="change-tables", file_format="csv"),
        FilesOutput(path=str(tmp_path / "messages"), format="messages", messages=MessageSettings(encoding="json")),
    )
    with publisher_of(engine, existing, *outputs, tables=("usr", "view_usr", "part")) as publisher:
        publisher.run_once()
    assert "".join(statuses(engine, existing).values()) == DOCUMENTED_ENDS
    assert shape(engine, existing) == before
    made = {
        "documents.xml": documents(tmp_path / "xds"),
        "change-tables.csv": change_rows(tmp_path / "ct"),
        "messages.jsonl": messages(tmp_path / "messages"),
    }
    if os.environ.get("EVENTLOG_GOLDEN") == "write":
        for name, content in made.items():
            (GOLDEN / name).write_text(content)
    assert made == {name: (GOLDEN / name).read_text() for name in made}


def documents(folder: Path) -> str:
    """Read the XDS documents without the program's version."""
    made = "".join(path.read_text() for path in sorted(folder.glob("*.xml")))
    return made.replace(f'<product version="{VERSION}"', '<product version=""')


def change_rows(folder: Path) -> str:
    """Read the change tables one after the other, without the databases' transactions."""
    tables = {path.parent.name.removeprefix(f"{SCHEMA}."): path for path in folder.glob("*/*.csv")}
    return "".join(f"{name}\n" + _ROW.sub(_untold, tables[name].read_text()) for name in sorted(tables))


def messages(folder: Path) -> str:
    """Read the messages, without the databases' transactions."""
    made = "".join(path.read_text() for path in sorted(folder.glob("*.jsonl")))
    alike = _MESSAGE.sub(_untold, made.replace(f'"topic":"{SCHEMA}.', '"topic":"'))
    return re.sub(r',"transaction(Id|EventCounter|LastEvent)":[^,}]*', "", alike)


_ROW = re.compile(
    r"^(?P<at>\d{14})\d\d(?P<seq>\d{19}(?:,[^,]*){4},)[^,]*(?P<rest>,)(?P<time>[-: \d]{19})", re.MULTILINE
)
_MESSAGE = re.compile(r'(?P<at>\d{14})\d\d(?P<seq>\d{19}")(?P<rest>,"timestamp":")(?P<time>[-:T\d]{19})')


def _untold(found: re.Match[str]) -> str:
    """Remove the transaction from a row.

    If the database tells its commit time, change_seq begins with that, in the year of the test's run; elsewhere with
    the row's time. The row's time is put there.
    """
    row = re.sub(r"\D", "", found["time"])
    assert found["at"] == row or found["at"] > "2026"
    return f"{row}00{found['seq']}{found['rest']}{found['time']}"
