"""The independent replayer of change tables and messages: what a consumer holds that keeps rows by their images.

It imports nothing of eventlog. It reads messages of JSON lines and change tables of CSV files, as they lie in a folder.
"""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from tests.hardening.schemas.replaying import Shape, Store, same_time

HEADER: Final = "header__"
OPERATIONS: Final = {"INSERT": "I", "UPDATE": "U", "DELETE": "D", "REFRESH": "I"}
BOOLEANS: Final = {"true": "1", "false": "0"}
BINARY: Final = ("BYTEA", "BLOB", "LONGBLOB", "BINARY", "VARBINARY")


@dataclass
class Images:
    """Rows as images tell them: each sets the columns that its mask names. Child tables are not told in these formats."""

    folder: Path
    shapes: Sequence[Shape]
    store: Store = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    _taken: set[Path] = field(default_factory=set)
    _last: dict[str, str] = field(default_factory=dict)

    def take(self) -> None:
        """Applies what is new in the folder, in the order in which files appeared."""
        known = {shape.name: shape for shape in self.shapes if shape.key}
        for file in sorted({*self.folder.rglob("*.jsonl"), *self.folder.rglob("*.csv")} - self._taken, key=appeared):
            self._taken.add(file)
            for table, operation, sequence, row in _messages(file, known) if file.suffix == ".jsonl" else _rows(file):
                if sequence:  # rows of a full load have none
                    self._follow(file, table, sequence)
                self._apply(known[table], operation, row)

    def _follow(self, file: Path, table: str, sequence: str) -> None:
        """Numbers of a table rise, also from file to file."""
        last = self._last.get(table, "")
        if sequence <= last:
            self.wrong.append(f"{file.name}: {sequence} of {table} comes after {last}")
        self._last[table] = sequence

    def _apply(self, shape: Shape, operation: str, row: Mapping[str, str | None]) -> None:
        place = shape.name, "+".join(f"{name}={row[name]}" for name in shape.key)
        if operation == "D":
            self.store.pop(place, None)
            return
        held = self.store.setdefault(place, {})
        for name, value in row.items():
            if name not in shape.key:
                held[name] = set() if value is None else {_plain(value)}

    def differences(self, tables: Store) -> list[str]:
        """What was wrong on the way, and where rows are not what the tables have."""
        held = {place: {name: value for name, value in row.items() if value} for place, row in self.store.items()}
        own = {
            place: {name: {_plain(one) for one in values} for name, values in row.items() if "." not in name}
            for place, row in tables.items()
        }
        places = sorted(own.keys() | held.keys())
        named = self.folder.name
        different = [place for place in places if own.get(place) != held.get(place)]
        return [
            *self.wrong,
            *(f"{named}: {place}: tables {own.get(place)}, consumer {held.get(place)}" for place in different),
        ]


def appeared(file: Path) -> tuple[int, str]:
    """When a file got its name, and the name where nobody can tell: after a late commit names are not in the order of writing.

    Its content was written before, by several threads, so the time of that says nothing. Parts of a conversion, of which
    several are written at a time, are in the order of their names.
    """
    return 0 if file.name.startswith("part-") else file.stat().st_ctime_ns, str(file)


def _messages(file: Path, shapes: Mapping[str, Shape]) -> Iterator[tuple[str, str, str, dict[str, str | None]]]:
    """Messages; what is binary comes in hexadecimal there, and in Base64 elsewhere. In parts of a conversion the folder is the topic."""
    for line in file.read_text(encoding="utf-8").splitlines():
        message = json.loads(line)
        value = message.get("value", message)
        headers, data = value["headers"], value["data"]
        mask = headers["columnMask"]
        known = -1 if mask is None else int(mask, 16)  # a full load names no columns, for it has all of them
        row = {name: _text(value) for place, (name, value) in enumerate(data.items()) if known >> place & 1}
        table = message.get("topic", file.parent.name).rpartition(".")[2]
        for name in [name for name, kind in shapes[table].columns if kind in BINARY and row.get(name)]:
            row[name] = base64.b64encode(bytes.fromhex(row[name] or "")).decode("ascii")
        yield table, OPERATIONS[headers["operation"]], headers["changeSequence"], row


def _rows(file: Path) -> Iterator[tuple[str, str, str, dict[str, str | None]]]:
    """Rows of a change table; the image before, which comes with the same number, says nothing new."""
    with file.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            operation, mask = row[f"{HEADER}change_oper"], row[f"{HEADER}change_mask"]
            if operation == "B":
                continue
            told = {
                name: None if value == "\\N" else value
                for place, (name, value) in enumerate(row.items())
                if not name.startswith(HEADER) and (value != "\\N" or int(mask or "0", 16) >> place & 1)
            }
            table = file.parent.name.rpartition(".")[2].removesuffix("__ct")
            yield table, operation, row[f"{HEADER}change_seq"], told


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(text: str) -> str:
    """A number by its value, for formats write some as numbers; true and false as such; a time without zeros and UTC at its end."""
    try:
        return str(Decimal(BOOLEANS.get(text, text)).normalize())
    except InvalidOperation:
        return same_time(text.removesuffix("+00:00"))
