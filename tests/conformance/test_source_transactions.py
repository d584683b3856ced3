"""The transactions of log rows: told where the database knows them and an output asks, and never mixed in one change."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, inspect

from eventlog.capture.install import install, uninstall
from eventlog.capture.track import track
from eventlog.check.examine import check
from eventlog.config.settings import Config, SourceConfig
from eventlog.convert.local import convert
from eventlog.convert.settings import Conversion, FilesInput, MessageFiles
from eventlog.core.model import Event
from eventlog.core.rules import Options, decide
from eventlog.sinks.outputs import FilesOutput
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.findlog import log_columns
from eventlog.sql.names import CONTEXT, STANDARD, TRANSACTION, LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.conformance.event_logs import LogTable, installed
from tests.support.log_rows import LogRows
from tests.support.logged import USR, run
from tests.support.strategies import CATALOG

ROW = "INSERT INTO event_log (table_key, event_type, table_name, column_name, new_value) VALUES"


def two_transactions(log: LogTable) -> LogTable:
    """Two columns of one object, each written in a transaction of its own."""
    log.write(1, column_name="fname")
    log.write(2, column_name="lname")
    return log


def read(log: LogTable, *, asked: bool) -> list[Event]:
    return list(LogRows(log.engine, log.names, settings=LogSettings(transactions=asked)).read(0).rows)


def spans(events: list[Event]) -> list[tuple[tuple[int, ...], ...]]:
    return [change.positions for change in decide(events, catalog=CATALOG).changes]


def test_where_nobody_asks_or_can_tell_they_make_one_change(postgresql: Engine, sqlite: Engine) -> None:
    assert spans(read(two_transactions(installed(postgresql)), asked=False)) == [((1,), (2,))]
    events = read(two_transactions(installed(sqlite)), asked=True)
    assert {event.transaction for event in events} == {None}
    assert spans(events) == [((1,), (2,))]


def own(engine: Engine) -> list[Event]:
    """Read the waiting rows of a log made by eventlog, with their transactions."""
    run(engine, "DELETE FROM event_log_mark WHERE name <> 'log adopted'")  # no batch is in hand
    source = LogRows(engine, log_columns(engine, LogNames()), settings=LogSettings(transactions=True))
    return list(source.read(0).rows)


def test_a_savepoint_does_not_split_a_transaction_of_an_own_log(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, *USR)
    track(postgresql, ["usr"], TriggerOptions(style=Style.FIELD))
    outer, inner = "INSERT INTO usr VALUES (1, 'a', 'b', 3)", "UPDATE usr SET fname = 'c'"
    run(postgresql, outer, "SAVEPOINT one", inner, "SAVEPOINT two", "DELETE FROM usr", "RELEASE SAVEPOINT one")
    run(postgresql, outer)
    numbers = [event.transaction and event.transaction.id for event in own(postgresql)]
    assert len(set(numbers[:5])) == 1 == len(set(numbers[5:]))
    assert numbers[0] != numbers[5]
    assert None not in numbers


def test_the_time_of_the_commit_is_told_where_the_server_keeps_it(postgresql: Engine) -> None:
    install(postgresql)
    asked = f"{ROW} ('idu=1', 1, 'usr', 'fname', 'a')"
    run(postgresql, asked, "SELECT pg_sleep(0.2)")
    [event] = own(postgresql)
    assert event.transaction is not None
    assert event.transaction.time is not None
    assert event.transaction.time - dt.datetime.fromisoformat(str(event.time)) >= dt.timedelta(seconds=0.2)
    run(postgresql, f"UPDATE event_log SET {TRANSACTION} = {TRANSACTION} - 2100000000")
    [event] = own(postgresql)
    assert event.transaction is not None
    assert event.transaction.time is None


def test_an_adopted_log_is_not_altered_and_check_says_what_it_tells(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, "DROP TABLE event_log_outcome, event_log_mark, event_log_schema, event_log_version")
    run(postgresql, f"ALTER TABLE event_log DROP COLUMN {TRANSACTION}, DROP COLUMN {CONTEXT}")
    install(postgresql)
    assert len(inspect(postgresql).get_columns("event_log")) == 10
    assert "a savepoint and a requeue" in said(postgresql)
    uninstall(postgresql)


def test_check_says_where_rows_tell_their_transaction_and_where_nobody_does(postgresql: Engine, sqlite: Engine) -> None:
    for engine in (postgresql, sqlite):
        install(engine)
    assert TRANSACTION in said(postgresql)
    assert "stay empty" in said(sqlite)


def said(engine: Engine) -> str:
    """Return the words of `check` on transactions."""
    url = engine.url.render_as_string(hide_password=False)
    config = Config(source=SourceConfig(url=url), output=(FilesOutput(path=".", format="change-tables"),))
    [point] = [one for one in check(lambda: config) if one.name == "transaction ids"]
    return point.said


@pytest.mark.parametrize("coalesce", [False, True])
def test_coalesced_or_not_no_change_spans_two_transactions(postgresql: Engine, coalesce: bool) -> None:
    install(postgresql)
    rows = ", ".join(
        f"('idu=1', 2, 'usr', '{column}', '{value}')" for column, value in [("fname", "a"), ("lname", "b")]
    )
    run(postgresql, f"{ROW} {rows}", f"{ROW} ('idu=1', 2, 'usr', 'fname', 'c')")
    run(postgresql, f"{ROW} {rows}")
    events = own(postgresql)
    changes = decide(events, catalog=CATALOG, options=Options(coalesce=coalesce)).changes
    written = {event.position: event.transaction for event in events}
    assert all({written[position] for position in change.positions} == {change.transaction} for change in changes)
    assert len(changes) == (2 if coalesce else 3)
    alike = [replace(event, transaction=None) for event in events]
    assert len(decide(alike, catalog=CATALOG, options=Options(coalesce=True)).changes) == 1


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
@pytest.mark.parametrize(
    "cells, expected",
    [(None, [("2", None)]), (["", ""], [("2", None)]), (["7", "8"], [("1", 7), ("2", 8)])],
    ids=["no column", "empty", "told"],
)
def test_files_may_tell_transactions_or_not(
    tmp_path: Path, ending: str, cells: list[str] | None, expected: list[tuple[str, int | None]]
) -> None:
    row = dict.fromkeys(STANDARD, "usr") | {"record_id": "1", "event_type": "2", "status": "N", "table_key": "idu=1"}
    row |= {"event_time": "2024-05-06T07:08:09", "old_value": "a", "new_value": "b", "column_name": "fname"}
    lines = [row, row | {"record_id": "2", "column_name": "lname"}]
    if cells is not None:
        lines = [line | {TRANSACTION: cell} for line, cell in zip(lines, cells, strict=True)]
    head = [",".join(lines[0])] if ending == "csv" else []
    said = [",".join(line.values()) if ending == "csv" else json.dumps(line) for line in lines]
    place = tmp_path / f"rows.{ending}"
    place.write_text("\n".join([*head, *said]) + "\n")
    assert told(FilesInput(places=(str(place),)), tmp_path / "out") == expected


def told(rows: FilesInput, out: Path) -> list[tuple[str, int | None]]:
    """Convert; return position and transaction of each message."""
    convert(Conversion(input=rows, destination=out, catalog=CATALOG, format=MessageFiles()))
    lines = [json.loads(line) for file in sorted(out.glob("*/*.jsonl")) for line in file.read_text().splitlines()]
    headers = sorted((line["headers"] for line in lines), key=lambda one: str(one["changeSequence"]))
    assert {one["transactionEventCounter"] for one in headers} <= {None}
    return [(one["streamPosition"], int(one["transactionId"], 16) if one["transactionId"] else None) for one in headers]
