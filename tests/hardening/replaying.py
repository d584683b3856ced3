"""The independent checker: applies what came out to an empty store, and holds it against the tables and the log.

It knows the documents' forms from their specifications and shares no code with the program, but for its XML parser.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from msgspec import Struct
from sqlalchemy import Engine, text

from eventlog.core.model import REFRESH

Object = tuple[str, str]
Store = dict[Object, dict[str, str]]
Values = dict[Object, dict[str, set[str]]]
"""A store of attributes that hold several values each."""

Changed = tuple[str, Mapping[Any, Any]]
"""A table, and a full image of one of its rows with what is said of the change."""

OPERATION = "header__change_oper"

SEVERAL = frozenset({"usr_phone.phoneno", "item_tag.tag"})
KEYS = {"usr": ("idu",), "item": ("shop", "number")}


class Told(Struct, frozen=True):
    """One event of a document: its object, and the numbers that its event-id spans."""

    place: Object
    low: int
    high: int


def tables(engine: Engine) -> Store:
    """What the tables hold: attributes without keys and NULLs, of objects that have any."""
    found: Store = {}
    with engine.connect() as connection:
        for table, key in KEYS.items():
            for row in map(dict, connection.execute(text(f"SELECT * FROM {table}")).mappings()):
                found[table, written_key(table, row)] = shown(row, key)
    return filled(found)


def written_key(table: str, row: Mapping[str, Any]) -> str:
    """The key as an association has it: `table_key` of the reference, 1.5."""
    return "+".join(f"{name}={_quoted(str(row[name]))}" for name in KEYS[table])


def shown(row: Mapping[str, Any], key: Iterable[str]) -> dict[str, str]:
    return {name: str(value) for name, value in row.items() if name not in set(key) and value is not None}


def filled(store: Store) -> Store:
    """The store without objects that have no attribute: nothing can be told of them."""
    return {place: values for place, values in store.items() if values}


def replay_xds(documents: Iterable[bytes]) -> tuple[Store, list[Told]]:
    """The store after the documents, in which each attribute has one value, and every event that was told, in order."""
    store, told = replay_values(documents)
    return {place: {name: value for name, (value,) in row.items()} for place, row in store.items()}, told


def replay_values(documents: Iterable[bytes]) -> tuple[Values, list[Told]]:
    """The same with all values of each attribute, without attributes that hold nothing."""
    store: Values = {}
    told: list[Told] = []
    for body in documents:
        for event in ET.fromstring(body).iter():  # noqa: S314  # the program's own documents
            if event.tag in ("add", "modify", "delete"):
                told.append(told_of(event))
                _apply(store, told[-1].place, event)
    kept = {place: {name: held for name, held in row.items() if held} for place, row in store.items()}
    return {place: row for place, row in kept.items() if row}, told


def replay_rows(rows: Iterable[Changed]) -> Store:
    """The store after full images."""
    store: Store = {}
    for table, row in rows:
        place, operation = (table, written_key(table, row)), row[OPERATION]
        if operation in ("I", "U", "INSERT", "UPDATE"):
            plain = {name: value for name, value in row.items() if not name.startswith("header__")}
            store[place] = shown(plain, KEYS[table])
        elif operation in ("D", "DELETE"):
            store.pop(place, None)
    return filled(store)


def change_tables(engine: Engine) -> list[Changed]:
    """The rows of change tables in the order of their numbers."""
    with engine.connect() as connection:
        found = [
            (str(row["header__change_seq"]), table, row)
            for table in KEYS
            for row in connection.execute(text(f"SELECT * FROM {table}__ct")).mappings()
        ]
    return in_order(found)


def change_files(folder: Path) -> list[Changed]:
    """The same of change tables in files."""
    import pyarrow.parquet as pq

    found = [
        (row["header__change_seq"], table, row)
        for table in KEYS
        for file in sorted(folder.glob(f"*{table}__ct/*.parquet"))
        for row in pq.ParquetFile(file).read().to_pylist()
    ]
    return in_order(found)


def in_order(found: Sequence[tuple[str, str, Mapping[Any, Any]]]) -> list[Changed]:
    """Rows in the order of their numbers; each change stands there once."""
    sequences = [(sequence, row[OPERATION]) for sequence, _, row in found]
    assert len(sequences) == len(set(sequences)), "a change stands in a change table twice"
    return [(table, row) for _, table, row in sorted(found, key=lambda one: one[0])]


def messages(found: Mapping[str, Iterable[bytes | None]]) -> list[Changed]:
    """The rows of topics in the order of their numbers; a number that comes again is a repeat."""
    known: dict[str, Changed] = {}
    for table, values in found.items():
        for message in (json.loads(value or b"") for value in values):
            headers = message["headers"]
            row = message["data"] if message.get("data") is not None else message["beforeData"]
            known[headers["changeSequence"]] = (table, {**row, OPERATION: headers["operation"]})
    return [known[sequence] for sequence in sorted(known)]


def account_for_log(engine: Engine, told: list[Told] | None) -> None:
    """Every row of the log has ended, and each that was simply published stands in exactly one event of its object."""
    with engine.connect() as connection:
        log = connection.execute(
            text("SELECT record_id, status, table_name, table_key, perpetrator FROM event_log")
        ).all()
        ended = dict(
            tuple(row)
            for row in connection.execute(
                text("SELECT record_id, reason FROM event_log_outcome WHERE reason <> 'published'")
            ).all()
        )
    odd = [tuple(row) for row in log if row[1] not in "SW" or (row[1] == "W") != (ended.get(row[0]) == "vanished")]
    assert odd == [], f"rows that did not end as they should: {odd[:5]}"
    if told is not None:
        published = {number: (table, key) for number, _, table, key, _ in log if number not in ended}
        _account_for_order(told, {row[0] for row in log if row[4] == REFRESH})
        # What one output has told, another may have decided once more together with later rows, after an error.
        others = {number for number, reason in ended.items() if reason in ("vanished", "superseded")}
        _account_for_events(told, published, others)


def _account_for_order(told: list[Told], asked: set[int]) -> None:
    """Each event is told once, and those of an object in its order.

    Rows that a full load has `asked` for are written without a lock on the object, so that one may be committed after a
    change with a higher number; what it tells is read back then, and never older than what was told before.
    """
    highest: dict[Object, list[int]] = {}
    for event in told:
        highest.setdefault(event.place, []).append(event.high)
    for place, found in highest.items():
        assert len(found) == len(set(found)), f"told twice: {place}: {found}"
        changes = [number for number in found if number not in asked]
        assert changes == sorted(changes), f"out of order: {place}: {found}"


def _account_for_events(told: list[Told], published: dict[int, Object], vanished: set[int]) -> None:
    spans: dict[Object, list[tuple[int, int]]] = {}
    for event in told:
        spans.setdefault(event.place, []).append((event.low, event.high))
    for number, place in published.items():
        around = [span for span in spans.get(place, []) if span[0] <= number <= span[1]]
        assert around, f"row {number} of {place} is marked as published and stands in no document"
    # An object may vanish between two attempts of a batch: the first has told of it, the row ends as the second saw it.
    odd = {number for event in told for number in (event.low, event.high)} - set(published) - vanished
    assert odd == set(), f"told of rows that are not published: {sorted(odd)[:5]}"


def told_of(event: ET.Element) -> Told:
    """The object and the numbers of an event."""
    association = (event.findtext("association") or "").strip()
    key, _, rest = association.partition(",table=")
    while ",table=" in rest:  # a value may hold the same words; the last ones are the table's
        more, _, rest = rest.partition(",table=")
        key = f"{key},table={more}"
    low, _, high = event.get("event-id", "").partition("-")
    return Told((rest.split(",")[0], key), int(low), int(high or low))


def _apply(store: Values, place: Object, event: ET.Element) -> None:
    if event.tag == "delete":
        store.pop(place, None)
        return
    row = store.setdefault(place, {})
    for attribute in event:
        name = attribute.get("attr-name", "")
        held = row.setdefault(name, set())
        if attribute.tag == "add-attr":
            _add(held, attribute, name)
        for step in attribute if attribute.tag == "modify-attr" else ():
            if step.tag == "remove-all-values":
                held.clear()
            elif step.tag == "remove-value":
                held -= _values(step)
            else:
                _add(held, step, name)


def _add(held: set[str], element: ET.Element, name: str) -> None:
    if name not in SEVERAL:
        held.clear()
    held |= _values(element)


def _values(element: ET.Element) -> set[str]:
    return {value.text or "" for value in element.iter("value")}


def _quoted(value: str) -> str:
    if not set(value) & set(",;'+\"=\\<>") and value == value.strip(" "):  # blanks round a bare value do not count
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
