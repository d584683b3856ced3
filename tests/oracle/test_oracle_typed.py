"""Every statement for Oracle fits the tables that eventlog makes: names, kinds, and where LOBs may be; no server is asked.

Faults put in on purpose are found: those that statements of ours once had, and one of each kind.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cache, partial
from itertools import chain
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.care.listing import Cursor, Filters, listing
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.log import Log
from eventlog.sql.longtext import LONG_COLUMNS, find_long_parameters
from eventlog.sql.names import LogNames
from tests.oracle.test_oracle_driver import answers, cycle, listen, look_at_flow
from tests.oracle.typed import DOCUMENT
from tests.oracle.typed_statements import (
    Statement,
    of_folder,
    of_loads,
    of_triggers,
    of_values,
    tables,
)

SOURCES = {"folder": of_folder, "loads": of_loads, "triggers": of_triggers, "values": of_values}


@cache
def everything(kind: str) -> tuple[Statement, ...]:
    return tuple({statement.text: statement for statement in SOURCES[kind]()}.values())


def faults(statement: Statement) -> list[str]:
    """What the check says of a statement, of parameters that are two things at once, and of how they are bound."""
    check = statement.check()
    kinds = {name: " and ".join(sorted(kinds)) for name, kinds in check.used.items()}
    twice = [f":{name} is {kind}" for name, kind in kinds.items() if " and " in kind]
    lobs = find_long_parameters(statement.text)
    bound = [
        f":{name} is {kind}, and {'a LOB' if name in lobs else 'a string'} is bound to it"
        for name, kind in kinds.items()
        if (name in lobs) != (kind in ("lob", DOCUMENT))
    ]
    return check.faults + twice + bound


def test_what_is_bound_as_a_lob_is_what_the_tables_have_as_one() -> None:
    ours = [columns for name, columns in tables().items() if name.startswith("EVENT_LOG")]
    lobs = {name.lower() for columns in ours for name, kind in columns.items() if kind == "lob"}
    assert lobs == LONG_COLUMNS


@pytest.mark.parametrize("kind", SOURCES)
def test_every_statement_fits_its_tables(kind: str) -> None:
    assert len(everything(kind)) > 10
    found = {statement.name: faults(statement) for statement in everything(kind)}
    assert {name: complaint for name, complaint in found.items() if complaint} == {}


def test_most_of_what_is_checked_speaks_of_columns_that_are_there() -> None:
    made = tables()
    assert made["EVENT_LOG_PARKED"]["NOTE"] == made["EVENT_LOG"]["OLD_VALUE"] == "lob"
    assert made["EVENT_LOG"]["RECORD_ID"] == "number"
    assert made["ALL_TRIGGERS"]["TRIGGER_BODY"] == "long"


BROKEN = {
    # What ours had: a note of the list by an aggregate, and a note among what is grouped.
    "SELECT MIN(parked.note) KEEP (DENSE_RANK FIRST ORDER BY parked.output) FROM event_log_parked parked": "a lob in MIN",
    "SELECT MIN(parked.output) KEEP (DENSE_RANK FIRST ORDER BY parked.note) FROM event_log_parked parked": "a lob in KEEP",
    "SELECT record_id, note FROM event_log_parked GROUP BY record_id": "note is not in GROUP BY",
    "SELECT note FROM event_log_parked GROUP BY note": "a lob in GROUP BY",
    "SELECT DISTINCT note FROM event_log_parked": "a lob in DISTINCT",
    "SELECT note FROM event_log_hold UNION SELECT note FROM event_log_parked": "a lob in UNION",
    "SELECT note FROM event_log_parked ORDER BY note": "a lob in ORDER BY",
    "SELECT record_id FROM event_log_parked ORDER BY 1, note": "a lob in ORDER BY",
    "SELECT 1 FROM event_log_mark WHERE value = :former": "a lob in EQ",
    "SELECT 1 FROM event_log_mark WHERE value IN (:a, :b)": "a lob in IN",
    "SELECT 1 FROM event_log_mark WHERE value BETWEEN :a AND :b": "a lob in BETWEEN",
    "SELECT COUNT(value) FROM event_log_mark": "a lob in COUNT",
    "SELECT COALESCE(note, 'none') FROM event_log_hold": "lob and text in COALESCE",
    "SELECT COALESCE(note, :none) FROM event_log_hold": "the parameter none and a lob in COALESCE",
    "SELECT CASE WHEN 1 = 1 THEN note ELSE reason END FROM event_log_parked": "lob and text in CASE",
    "SELECT UPPER(trigger_body) FROM all_triggers": "UPPER of long",
    "SELECT DISTINCT trigger_body FROM all_triggers": "a long in DISTINCT",
    "SELECT STANDARD_HASH(old_value) FROM event_log": "STANDARD_HASH of lob",
    "SELECT 1 FROM event_log WHERE record_id = table_key": "number and text in EQ",
    "SELECT 1 FROM event_log WHERE event_time > '2025-01-01'": "moment and text in GT",
    "SELECT 1 FROM event_log WHERE record_id = :x AND table_key = :x": ":x is number and text",
    # Texts for a LOB of which only some would be bound as one (ORA-24816), and a LOB for what is none.
    "INSERT INTO event_log_hold (record_id, note) VALUES (:record_id, :reason)": ":reason is lob, and a string is bound",
    "UPDATE event_log_planned SET records = :records, details = :rest": ":rest is lob, and a string is bound to it",
    "INSERT INTO event_log_hold (record_id, note) SELECT record_id, :why FROM event_log_parked": ":why is lob, and a string",
    "DELETE FROM event_log_parked WHERE reason = :note": ":note is text, and a LOB is bound to it",
    "DELETE FROM event_log_mark WHERE name = :value": ":value is text, and a LOB is bound to it",
    "SELECT 1 FROM event_log_parking": "there is no table EVENT_LOG_PARKING",
    "SELECT recordid FROM event_log": "there is no column recordid",
    "SELECT e.due FROM event_log e": "there is no column e.due",
    "SELECT GROUP_CONCAT(output) FROM event_log_parked": "there is no function GROUP_CONCAT",
    "SELECT NOW() FROM dual": "there is no function NOW",
    "SELECT SUBSTR(output) FROM event_log_parked": "1 arguments of SUBSTR",
    "SELECT RAWTOHEX(output) FROM event_log_parked": "RAWTOHEX of text",
    "INSERT INTO event_log_hold (record_id, note) VALUES (:record_id)": "1 values for 2 columns of EVENT_LOG_HOLD",
    "INSERT INTO event_log_hold (record_id, why) VALUES (:record_id, :note)": "there is no column WHY to write to",
    "INSERT INTO event_log_hold (record_id, note) SELECT output, note FROM event_log_parked": "RECORD_ID is number, and text"
    " is written to it",
    "UPDATE event_log_parked SET due = reason": "DUE is number, and text is written to it",
    "SELECT p.record_id FROM (SELECT 1 AS one FROM event_log_hold h WHERE h.record_id = p.record_id) q"
    " CROSS JOIN event_log_parked p": "there is no column p.record_id",
}


@pytest.mark.parametrize("text", BROKEN)
def test_each_fault_is_found_without_a_server(text: str) -> None:
    assert any(BROKEN[text] in fault for fault in faults(Statement(name="broken", text=text)))


def misspell(name: str, found: re.Match[str]) -> str:
    return f"{name}x" if found[0] == name else found[0]


@pytest.mark.parametrize("kind", SOURCES)
def test_a_name_that_is_not_there_is_found_in_every_statement(kind: str) -> None:
    """In each statement some name of a column or table of ours is misspelt, and the check says so."""
    passed = []
    for statement in everything(kind):
        for name in ("record_id", "event_log", "SUBSTR", "TO_CHAR", "REPLACE", "old_1", "new_1"):
            broken, count = re.subn(rf"'(?:[^']|'')*'|\b{name}\b", partial(misspell, name), statement.text)
            if count and broken != statement.text and not faults(replace(statement, text=broken)):
                passed.append((name, statement.text))
    assert passed == []


KINDS: dict[str, tuple[type, ...]] = {
    "number": (int, float, Decimal),
    "text": (str,),
    "lob": (str,),
    DOCUMENT: (str,),
    "moment": (dt.datetime,),
    "raw": (bytes,),
}


def wrong_values(statement: str, parameters: Any) -> Iterator[str]:
    """What is bound as something else than its column is."""
    used = Statement(name="seen", text=statement).check().used
    for row in parameters if isinstance(parameters, list) else [parameters or {}]:
        for name, value in row.items():
            if value is not None and any(not isinstance(value, KINDS[kind]) for kind in used.get(name, ())):
                yield f":{name} is {value!r} and {used[name]} in {statement}"


def test_what_is_bound_is_what_its_column_is(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = listen(monkeypatch)
    found = {"SELECT MIN(n)": [(1, 3)], "SELECT entry.record_id AS": []}
    oracle.answers = lambda statement: next(
        (rows for begin, rows in found.items() if statement.startswith(begin)), answers(statement)
    )
    log = Log(oracle.engine, LogNames())
    cycle(oracle, LogSettings(handle_future_events=True), LogNames())
    filters = Filters(statuses="E", table="usr", key="idu=1", text="x", since="2026-01-01 00:00:00")
    listing(log, filters, Cursor(), numbered=True)
    with log.transaction() as connection:
        look_at_flow(connection, log, future=True)
    asked = [
        (text, given)
        for text, given in oracle.seen
        if text.startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE"))
    ]
    assert len(asked) > 10
    assert list(chain.from_iterable(wrong_values(text, given) for text, given in asked)) == []


def test_a_number_for_a_text_is_seen() -> None:
    assert list(wrong_values("DELETE FROM event_log_mark WHERE name = :name", {"name": 7}))
    assert not list(wrong_values("DELETE FROM event_log_mark WHERE name = :name", {"name": "7"}))
