"""Golden files: a history, what stands in the tables, and what the rules must make of it, as plain text.

    # what the case shows
    schema: indirect              of tests/golden/schemas; without it nothing is known of the tables
    coalesce: yes                 options of the rules: coalesce, user, allow_loopback, future, now
    == rows
    record_id | type | table | key | column | old | new [| event_time [| perpetrator]]
    == table
    usr idu=1 {"fname": "Jack"}   what reading back finds; Base64 for binary columns
    == outcomes
    == xds

Values are bare text, NULL, or JSON strings. `EVENTLOG_GOLDEN=write` writes the last two sections anew, to be read
before they are committed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eventlog.core.model import Cell, Event, Outcome, Reason, Row, RowId, Status, format_position
from eventlog.core.rules import Decision, Options, decide
from eventlog.core.schema import Catalog
from eventlog.core.schema_file import catalog_from_json
from eventlog.core.sql_types import Category
from eventlog.xds.write import XdsFormat

FOLDER = Path(__file__).parents[1] / "golden"
SECTIONS = ("rows", "table", "outcomes", "xds")


class GoldenCase:
    """One file, read."""

    def __init__(self, path: Path) -> None:
        head, *parts = path.read_text(encoding="utf-8").split("== ")
        self.path = path
        self.head = head
        self.sections = {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}
        assert set(self.sections) <= set(SECTIONS), f"{path}: the sections are {SECTIONS}"
        lines = [line for line in head.splitlines() if line and not line.startswith("#")]
        self.settings = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.catalog = self._catalog(self.settings.pop("schema", None))

    def decide(self) -> Decision:
        """Decide on the case by the rules."""
        rows = dict(self._table()) if "table" in self.sections else None
        return decide(list(self._events()), rows, catalog=self.catalog, options=self._options())

    def actual(self) -> dict[str, str]:
        """Return the last two sections as they are today."""
        decision = self.decide()
        return {
            "outcomes": "".join(_outcome(outcome) for outcome in decision.outcomes),
            "xds": "".join(XdsFormat().fragment(change, self.catalog) for change in decision.changes),
        }

    def write(self) -> None:
        """Puts what comes out today in place of what was expected."""
        sections = self.sections | self.actual()
        text = "".join(f"== {name}\n{sections[name]}" for name in SECTIONS if name in sections)
        self.path.write_text(self.head + text, encoding="utf-8")

    def _catalog(self, name: str | None) -> Catalog | None:
        return catalog_from_json((FOLDER / "schemas" / f"{name}.json").read_bytes()) if name else None

    def _options(self) -> Options:
        values: dict[str, Any] = dict(self.settings)
        for name in ("coalesce", "allow_loopback", "future"):
            values[name] = values.get(name) == "yes"
        if "now" in values:
            import datetime as dt

            values["now"] = dt.datetime.fromisoformat(values["now"])
        return Options(**values)

    def _events(self) -> Iterator[Event]:
        for line in self.sections["rows"].splitlines():
            fields = [_value(field.strip()) for field in line.split(" | ")]
            fields += ["2026-01-01 12:00:00", None][max(0, len(fields) - 7) :]
            number, kind, table, key, column, old, new, time, perpetrator = fields
            yield Event(
                position=(int(number or 0),),
                kind=None if kind is None else int(kind),
                table=table,
                key=key,
                column=column,
                old=old,
                new=new,
                time=time,
                perpetrator=perpetrator,
            )

    def _table(self) -> Iterator[tuple[RowId, Row]]:
        for line in self.sections["table"].splitlines():
            name, key, values = line.split(" ", 2)
            found = self.catalog.find(name) if self.catalog else None
            schema = found.table.schema if found else None
            yield RowId(schema, name, key), dict(self._cells(name, json.loads(values)))

    def _cells(self, name: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Cell]]:
        found = self.catalog.find(name) if self.catalog else None
        for column, value in values.items():
            category = found.table.attributes[column].column.category if found else Category.STRING
            octets = category is Category.OCTET and value is not None
            cell = base64.b64decode(value) if octets else tuple(value) if isinstance(value, list) else value
            yield column, cell


def golden_cases() -> list[Path]:
    """List all golden files of the rules."""
    return sorted((FOLDER / "rules").rglob("*.txt"))


def _value(field: str) -> str | None:
    if field == "NULL":
        return None
    if not field.startswith('"') or not field.endswith('"') or len(field) < 2:
        return field
    text: str = json.loads(field)
    return text


def _outcome(outcome: Outcome) -> str:
    start = f"{format_position(outcome.position)} {outcome.status} {outcome.reason}"
    published = outcome.status is Status.SUCCESS and outcome.reason is Reason.PUBLISHED
    return f"{start}\n" if published or not outcome.note else f"{start}: {outcome.note}\n"
