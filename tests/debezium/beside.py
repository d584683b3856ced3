"""Both captures beside each other: a table of all types is written, and what each of the two tells is compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.core.model import Refusal
from eventlog.core.seams import encode
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.sinks.events.debezium import DebeziumTable, Place
from eventlog.sinks.events.settings import DebeziumSettings
from eventlog.sinks.events.write import EventFormat
from eventlog.tracked.options import Style, TriggerOptions
from tests.debezium.columns import Case
from tests.debezium.engine import PREFIX, Told, capture
from tests.support.told import taken

TABLE: Final = "kinds"
DEFAULTED: Final = "_d"
"""Ends the name of a column that is NOT NULL and has a default."""


def make_table(cases: Sequence[Case]) -> str:
    """Write the statement that makes a table of all the cases."""
    columns = ["id integer NOT NULL PRIMARY KEY"]
    for case in cases:
        columns.append(f"{case.name} {case.type} NULL")
        if case.default:
            columns.append(f"{case.name}{DEFAULTED} {case.type} NOT NULL DEFAULT {case.default}")
    return f"CREATE TABLE {TABLE} ({', '.join(columns)})"


def write_rows(cases: Sequence[Case]) -> Iterator[str]:
    """Write statements that insert rows of all values, a row of NULLs and defaults, change one and delete one."""
    count = max(len(case.values) for case in cases)
    for number in range(count):
        cells = {"id": str(number + 1)}
        for case in cases:
            cells[case.name] = case.values[min(number, len(case.values) - 1)]
            if case.default:
                cells[f"{case.name}{DEFAULTED}"] = cells[case.name]
        yield f"INSERT INTO {TABLE} ({', '.join(cells)}) VALUES ({', '.join(cells.values())})"
    yield f"INSERT INTO {TABLE} (id) VALUES ({count + 1})"
    yield f"UPDATE {TABLE} SET {cases[0].name} = NULL WHERE id = 1"
    yield f"DELETE FROM {TABLE} WHERE id = 2"


def run_raw(engine: Engine, *statements: str) -> None:
    """Run statements as they are, each in a transaction of its own."""
    for statement in statements:
        with engine.begin() as connection:
            connection.exec_driver_sql(statement.replace("%", "%%"))


def tell_both(
    engine: Engine, cases: Sequence[Case], folder: Path, made: Sequence[str], **modes: Any
) -> tuple[list[Told], list[Told], list[str]]:
    """Write the table, and gather what Debezium tells of it, what eventlog does, and why it left values out."""
    run_raw(engine, *made, make_table(cases))
    if engine.dialect.name == "postgresql":
        run_raw(engine, f"ALTER TABLE {TABLE} REPLICA IDENTITY FULL")
    install(engine)
    track(engine, [TABLE], TriggerOptions(style=Style.IMAGE))
    with capture(engine, [TABLE], folder, **modes) as wait:
        run_raw(engine, *write_rows(cases))
        theirs = wait()
    refusals: list[str] = []
    return theirs, tell_ours(engine, refusals, **modes), refusals


def tell_ours(engine: Engine, refusals: list[str], **modes: Any) -> list[Told]:
    """Gather what eventlog's format tells of what was logged, and why it leaves values out."""
    settings = DebeziumSettings(schemas=True, server=PREFIX, tombstones=False, **modes)
    place = Place(database=engine.dialect.name, home=engine.url.database or "")
    form = EventFormat(
        table=partial(DebeziumTable, settings=settings, place=place),
        batch_size=500,
        topic=settings.topic_template(),
        topic_values={"server": settings.server},
        schema=place.schema,
    )
    catalog, _, changes = taken(engine)
    told = []
    for made in encode(form, changes, catalog, ""):
        if isinstance(made, Refusal):
            refusals.append(made.note)
            continue
        assert isinstance(made, MessagesDocument)
        told += [Told(one.topic, json.loads(one.key or b""), json.loads(one.value or b"")) for one in made.messages]
    return told


def compare(theirs: Sequence[Told], ours: Sequence[Told]) -> Iterator[tuple[str, str, Any, Any]]:
    """Find where the two tell something else: the column or the place, what it is, and what each says."""
    yield from _differing(
        "", "topics and operations", *[[(t.topic, t.value["payload"]["op"]) for t in side] for side in (theirs, ours)]
    )
    for their, our in zip(theirs, ours, strict=True):
        yield from _differing("", "key", their.key, our.key)
        yield from _compare_sources(their, our)
        yield from _differing("", "title", *[side.value["schema"]["name"] for side in (their, our)])
        for row in ("before", "after"):
            fields, others = (_fields(side, row) for side in (their, our))
            values, told = (side.value["payload"][row] for side in (their, our))
            yield from _differing("", f"{row} is there", values is None, told is None)
            for name in dict.fromkeys((*fields, *others)):
                yield from _differing(name, "schema", fields.get(name), others.get(name))
                if values is not None and told is not None and name in fields:
                    yield from _differing(name, "value", values.get(name), told.get(name, "not there"))


OWN: Final = frozenset({"version", "connector", "ts_ms", "ts_us", "ts_ns", "sequence", "lsn"})
"""What each capture says of itself, of the moment when it read a change, and of the database's own log."""


def _compare_sources(their: Told, our: Told) -> Iterator[tuple[str, str, Any, Any]]:
    """Compare where a change comes from: fields that both have."""
    fields, others = (_fields(side, "source") for side in (their, our))
    told, said = (side.value["payload"]["source"] for side in (their, our))
    for name in fields.keys() & others.keys():
        yield from _differing(f"source.{name}", "schema", fields[name], others[name])
        if name not in OWN:
            # The engine is told to leave a NULL that has a default.
            default = fields[name].get("default")
            yield from _differing(f"source.{name}", "value", default if told[name] is None else told[name], said[name])


def _differing(name: str, what: str, theirs: Any, ours: Any) -> Iterator[tuple[str, str, Any, Any]]:
    # As JSON, in which 1, 1.0 and true are not alike.
    if json.dumps(theirs, sort_keys=True) != json.dumps(ours, sort_keys=True):
        yield name, what, theirs, ours


def _fields(told: Told, row: str) -> dict[str, Any]:
    [found] = [field for field in told.value["schema"]["fields"] if field["field"] == row]
    return {field["field"]: field for field in found["fields"]}
