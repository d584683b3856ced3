"""The independent replayer: applies XDS documents to an empty store, checks each step, and reads tables for comparison.

It imports nothing of eventlog. What it knows is the documents' form and how SQL writes values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol
from xml.etree import ElementTree as ET

from sqlalchemy import Connection, Engine, text

Object = tuple[str, str]
"""A class and a key, `a=1+b=x`."""

Values = dict[str, set[str]]
Store = dict[Object, Values]

same_time = partial(re.compile(r"(?<=\d\d:\d\d:\d\d)(\.\d*?)0*$").sub, lambda found: found[1].rstrip("."))
"""A time without zeros at the end, of which some write more than others."""


class Past(Protocol):
    """What rows really were."""

    def read_back(self, event_id: str) -> tuple[int, set[str | None]]: ...
    def had(self, place: Object, name: str, values: set[str], since: int) -> bool: ...


@dataclass
class Replayer:
    """What a receiver holds that does as it is told, and what it found wrong with that.

    `valued` says that documents carry what was, so a value that is taken away must be there; where rows are read back, a
    value may have gone before anybody told of it. `strict` says that nothing may be changed that was not added, but by who
    tells all of it; `loose` are classes of which two rows may have one key for a while, so that what is told of the one is
    not so of the other, until the last word on both.

    What is read back while others change it is told late: what is told of it next may take away what it has no longer. So
    that is not wrong, but `past` must know the values that were read back.
    """

    strict: bool = False
    several: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()
    store: Store = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    past: Past | None = None
    ahead: set[tuple[Object, str]] = field(default_factory=set)
    """What was read back since everything was told for the last time."""
    ended: dict[Object, Values] = field(default_factory=dict)
    """What objects had that were deleted since then: where one comes again in the same statement, its child rows go behind it."""

    def take(self, documents: Iterable[bytes]) -> None:
        """Applies documents in their order."""
        for body in documents:
            for event in ET.fromstring(body).iter():  # noqa: S314  # the program's own documents
                if event.tag in ("add", "modify", "delete"):
                    self._apply(event)

    def _apply(self, event: ET.Element) -> None:
        place = _object(event)
        if event.tag == "delete":
            former = self.store.pop(place, None)
            self.ended[place] = former or {}
            if former is None and self._is_strict(place):
                self.wrong.append(f"{event.get('event-id')} deletes {place}, which is not there")
            return
        if place not in self.store and self._is_strict(place) and event.tag == "modify" and not _is_all(event):
            self.wrong.append(f"{event.get('event-id')} modifies {place}, which is not there")
        row = self.store.setdefault(place, {})
        for attribute in event:
            name = attribute.get("attr-name", "")
            if attribute.tag == "add-attr":
                self._add(row, name, attribute)
            for step in attribute if attribute.tag == "modify-attr" else ():
                self._step(place, row, name, step)
        if self.past is not None:
            self._look_back(self.past, event, place, row)

    def _look_back(self, past: Past, event: ET.Element, place: Object, row: Values) -> None:
        """What was read back must have been so when the event was there, or later."""
        number = event.get("event-id", "")
        since, names = past.read_back(number)
        for attribute in event.iter():
            name = attribute.get("attr-name", "")
            if not name or f"+{name}=" in f"+{place[1]}" or names.isdisjoint((None, name)):
                continue
            self.ahead.add((place, name))
            if not past.had(place, name, row.get(name, set()), since):
                self.wrong.append(f"{number} reads {name} of {place} as {row.get(name)}, which it never was since")

    def settle(self) -> None:
        """Everything was told that has happened."""
        self.ahead.clear()
        self.ended.clear()

    def _is_strict(self, place: Object) -> bool:
        return self.strict and place[0] not in self.loose

    def _step(self, place: Object, row: Values, name: str, step: ET.Element) -> None:
        if step.tag == "remove-all-values":
            row.pop(name, None)
        elif step.tag == "add-value":
            self._add(row, name, step)
        elif step.tag == "remove-value":
            held, gone = row.get(name, set()), _values(step)
            known = held | (self.ended.get(place, {}).get(name, set()) if name in self.several else set())
            if not gone <= known and place[0] not in self.loose and (place, name) not in self.ahead:
                self.wrong.append(f"{name} of {place} loses {sorted(gone)}, and has {sorted(held)}")
            row[name] = held - gone

    def _add(self, row: Values, name: str, element: ET.Element) -> None:
        held = row.get(name, set()) if name in self.several else set()
        row[name] = held | _values(element)

    def filled(self) -> Store:
        """The store without attributes that hold nothing, and without those that are the key: its place says them."""
        return {
            place: {name: held for name, held in row.items() if held and f"+{name}=" not in f"+{place[1]}"}
            for place, row in self.store.items()
        }


def _is_all(event: ET.Element) -> bool:
    """Whether nothing of what was before counts any more."""
    found = [attribute[0].tag for attribute in event.iter("modify-attr")]
    return bool(found) and set(found) == {"remove-all-values"}


def _object(event: ET.Element) -> Object:
    association = event.findtext("association") or ""
    key, _, place = association.partition(",table=")
    return place.partition(",")[0], key


def _values(element: ET.Element) -> set[str]:
    return {same_time(value.text or "") for value in element.iter("value")}


@dataclass(frozen=True)
class Shape:
    """A table as the database describes it."""

    name: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    parent: str | None = None
    parent_key: tuple[str, ...] = ()
    """The parent of a table without a key, and the columns that hold the parent's key."""


def expected(engine: Engine, shapes: Sequence[Shape]) -> Store:
    """What the tables hold, as a receiver would."""
    with engine.connect() as connection:
        return entered({shape.name: rows_of(connection, shape) for shape in shapes}, shapes)


def rows_of(connection: Connection, shape: Shape) -> list[Any]:
    """The rows of a table, their values written as documents write them."""
    columns = ", ".join(f"{_text(connection.engine, *column)} AS {column[0]}" for column in shape.columns)
    return [dict(row) for row in connection.execute(text(f"SELECT {columns} FROM {shape.name}")).mappings()]


def entered(rows: Mapping[str, list[Any]], shapes: Sequence[Shape]) -> Store:
    """Rows as objects, those of child tables with their parents."""
    found: Store = {}
    for shape in sorted(shapes, key=lambda one: one.parent is not None):
        for row in rows[shape.name]:
            _enter(found, shape, row, {one.name: one for one in shapes})
    return found


def _enter(found: Store, shape: Shape, row: Any, shapes: dict[str, Shape]) -> None:
    owner, held = (shape.name, shape.key) if shape.parent is None else (shape.parent, shape.parent_key)
    place = owner, "+".join(f"{name}={row[own]}" for name, own in zip(shapes[owner].key, held, strict=True))
    values = found.setdefault(place, {})
    prefix = "" if shape.parent is None else f"{shape.name}."
    for name, _ in shape.columns:
        if name not in held and row[name] is not None:
            values.setdefault(prefix + name, set()).add(same_time(str(row[name])))


def _text(engine: Engine, name: str, kind: str) -> str:
    """SQL that writes a column's value as documents do."""
    database, kind = engine.dialect.name, kind.upper()
    if kind.startswith("BOOL"):
        return f"CASE WHEN {name} THEN 'true' WHEN NOT {name} THEN 'false' END"
    if kind == "TINYINT":
        return f"CASE {name} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"
    if kind == "BYTEA":
        return f"replace(encode({name}, 'base64'), E'\\n', '')"
    if kind == "BLOB":
        return f"REPLACE(TO_BASE64({name}), CHAR(10 USING utf8mb4), '')"
    if database == "postgresql" and kind == "TIMESTAMP":  # one with a zone is told as UTC
        return f"({name} AT TIME ZONE 'UTC')::text" if name == "moment" else f"{name}::text"
    if database == "postgresql" and kind.startswith("CHAR"):  # with its blanks, which a cast leaves out
        return f"CASE WHEN {name} IS NOT NULL THEN concat({name}) END"
    if database == "postgresql":
        return f"{name}::text"
    return f"CAST({name} AS {'CHAR' if database in ('mysql', 'mariadb') else 'TEXT'})"
