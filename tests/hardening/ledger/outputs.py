"""The outputs under test: each one's part of a configuration, and what a reader who is not eventlog's finds there."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from xml.etree import ElementTree as ET

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.exc import DBAPIError

from tests.hardening.ledger.book import Op
from tests.hardening.ledger.checking import TRACKED, Finding, Seen, Shown

_association = re.compile(r"id=(\d+),table=(\w+)").match
_OPS: Mapping[str, Op] = {"INSERT": "I", "UPDATE": "U", "DELETE": "D", "add": "I", "modify": "U", "delete": "D"}


class Output(Protocol):
    """One output of a publisher."""

    name: str

    def config(self) -> str:
        """Its part of the configuration, without the head of the table."""

    def grown(self) -> object:
        """Something that differs once there is more in it."""

    def shown(self) -> Shown:
        """What a reader finds."""

    def watched(self) -> Sequence[Finding]:
        """What somebody noticed who read it all the time."""


def called(output: str) -> str:
    """What the configuration calls an output."""
    return output.replace(" ", "-").lower()


def read_xds(body: bytes, where: str) -> Iterator[Seen]:
    """The changes of an XDS document."""
    for event in ET.fromstring(body).iter():  # noqa: S314  # the program's own documents
        if event.tag not in ("add", "modify", "delete"):
            continue
        association = event.findtext("association") or ""
        place = _association(association.strip())
        assert place is not None, f"{where}: {association}"
        values = {
            str(attribute.get("attr-name")): attribute.findtext(".//add-value/value") or attribute.findtext("value")
            for attribute in event
            if attribute.tag in ("add-attr", "modify-attr")
        }
        said = event.find(".//who")
        who = "" if said is None else said.get("context", "")
        yield seen((place[2], int(place[1])), str(event.tag), str(event.get("event-id")), values, where, who)


def read_message(value: bytes | str, table: str, where: str) -> Seen:
    """The change of a message."""
    message = json.loads(value)
    headers, row = message["headers"], message["data"]
    return seen((table, row["id"]), headers["operation"], headers["streamPosition"], row, where)


def seen(
    place: tuple[str, int],
    operation: str,
    record: str,
    values: Mapping[str, Any],
    where: str,
    who: str | None = None,
) -> Seen:
    """A change, from what its output says of it."""
    op, number = _OPS[operation], values.get("version")
    return Seen(
        place=place,
        op=op,
        record=int(record.rpartition("-")[2]),
        number=None if number is None or op == "D" else int(number),
        text=None if op == "D" else values.get("note"),
        where=where,
        who=who,
    )


class Growing:
    """A folder whose files are only added, under names that rise: looked at again and again."""

    def __init__(self, folder: Path, pattern: str) -> None:
        self.folder, self.pattern = folder, pattern
        self._found: set[str] = set()
        self._highest = ""
        self.fallen: list[str] = []

    def look(self) -> None:
        """Notes the names that appear below one that stood there when the look before began."""
        now = {path.name for path in self.folder.glob(self.pattern)}
        self.fallen += sorted(name for name in now - self._found if name < self._highest)
        self._highest = max(self._found, default="")  # a listing may miss what comes while it is made, but not twice
        self._found |= now

    def fell(self, output: str) -> list[Finding]:
        """What came too low."""
        self.look()
        return fell(output, self.fallen, f"looks for new files in {self.folder.name}")


class XdsFiles:
    """XDS documents in a folder, a change in each, read by name.

    `replaces` says that a row which is published anew takes its former file; in the order of times it gets another one.
    """

    name = "XDS files"

    def __init__(self, folder: Path, *, replaces: bool = True) -> None:
        self.folder = folder / "xds"
        self._replaces = replaces

    def config(self) -> str:
        return f'sink = "files"\nwho = true\npath = "{self.folder}"\n'

    def grown(self) -> object:
        return _count(self.folder)

    def shown(self) -> Shown:
        files = sorted(self.folder.glob("*.xml"))
        found = [one for file in files for one in read_xds(file.read_bytes(), file.name)]
        return Shown(output=self.name, seen=found, replaces=self._replaces)

    def watched(self) -> Sequence[Finding]:
        odd = [entry.name for entry in self.folder.iterdir() if entry.suffix != ".xml" and not _ours(entry.name)]
        return [Finding(what="left behind", output=self.name, why=name) for name in odd]


class MessageFiles:
    """Messages in files, read by name."""

    name = "message files"

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "messages"
        self._growing = Growing(self.folder, "*.jsonl")

    def config(self) -> str:
        return f'sink = "files"\nformat = "messages"\npath = "{self.folder}"\n'

    def grown(self) -> object:
        self._growing.look()
        return _count(self.folder)

    def shown(self) -> Shown:
        found: list[Seen] = []
        for file in sorted(self.folder.glob("*.jsonl")):
            for line in file.read_text(encoding="utf-8").splitlines():
                message = json.loads(line)
                value = json.dumps(message["value"])
                found.append(read_message(value, message["topic"].rpartition(".")[2], file.name))
        return Shown(output=self.name, seen=found)

    def watched(self) -> Sequence[Finding]:
        return self._growing.fell(self.name)


class ChangeFiles:
    """Change tables in files, read by change_seq, which is also their order by name."""

    name = "change files"

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "changes"
        self._growing = [Growing(self.folder, f"*{table}__ct/*.csv") for table in TRACKED]

    def config(self) -> str:
        return f'sink = "files"\nwho = true\nformat = "change-tables"\nfile_format = "csv"\npath = "{self.folder}"\n'

    def grown(self) -> object:
        for one in self._growing:
            one.look()
        return sum(_count(folder) for folder in self.folder.glob("*__ct"))

    def shown(self) -> Shown:
        return Shown(output=self.name, seen=_in_order(self._rows()))

    def watched(self) -> Sequence[Finding]:
        return [finding for one in self._growing for finding in one.fell(self.name)] + same_numbers(
            self.name, self._rows()
        )

    def _rows(self) -> list[tuple[str, Seen]]:
        rows: list[tuple[str, Seen]] = []
        for table in TRACKED:
            for file in sorted(self.folder.glob(f"*{table}__ct/*.csv")):
                with file.open(newline="", encoding="utf-8") as lines:
                    rows += [_changed(row, table, file.name) for row in csv.DictReader(lines) if _told(row)]
        return rows


class ChangeTables:
    """Change tables in a database, read by change_seq; somebody else reads only what is new, again and again."""

    name = "change tables"

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = create_engine(url)
        self._followed: dict[str, set[str]] = {table: set() for table in TRACKED}

    def config(self) -> str:
        return f'sink = "database"\nwho = true\nformat = "change-tables"\nurl = "{self.url}"\n'

    def grown(self) -> object:
        """Reads what is new, as the documentation says that one should."""
        for table, known in self._followed.items():
            known.update(self._numbers(table, max(known, default="0")))
        return sum(map(len, self._followed.values()))

    def shown(self) -> Shown:
        return Shown(output=self.name, seen=_in_order(self._rows()))

    def watched(self) -> Sequence[Finding]:
        self.grown()
        found = list(same_numbers(self.name, self._rows()))
        for table, known in self._followed.items():
            found += fell(self.name, sorted(self._numbers(table, "0") - known), f"read {table} from a watermark on")
        self._engine.dispose()
        return found

    def _rows(self) -> list[tuple[str, Seen]]:
        with self._engine.connect() as connection:
            return [
                _changed(row, table, f"{table}__ct")
                for table in self._followed
                if inspect(connection).has_table(f"{table}__ct")
                for row in connection.execute(text(f"SELECT * FROM {table}__ct")).mappings()
                if row["header__change_oper"] != "B"
            ]

    def _numbers(self, table: str, after: str) -> set[str]:
        """The numbers above one; none while the server is away, or the table is not made yet."""
        asked = text(f"SELECT header__change_seq FROM {table}__ct WHERE header__change_seq > :after")
        try:
            with self._engine.connect() as connection:
                return set(connection.scalars(asked, {"after": after}))
        except DBAPIError:
            return set()


def read_kafka(messages: Iterable[bytes | None], table: str) -> Iterator[tuple[str, Seen]]:
    """The changes of a topic's messages with their numbers, in the order of their offsets."""
    for offset, value in enumerate(messages):
        if value is not None:
            number = str(json.loads(value)["headers"]["changeSequence"])
            yield number, read_message(value, table, f"{table} offset {offset}")


def rising(output: str, numbers: Iterable[str]) -> list[Finding]:
    """The numbers that are not above those before them, in the order in which they came."""
    highest, low = "", list[str]()
    for number in numbers:
        if number <= highest:
            low.append(number)
        highest = max(highest, number)
    return fell(output, low, "reads on from an offset")


def _changed(row: Mapping[Any, Any], table: str, where: str) -> tuple[str, Seen]:
    number, operation = str(row["header__change_seq"]), str(row["header__operation"])
    values = {name: None if row[name] == "\\N" else row[name] for name in ("version", "note")}
    place = (table, int(row["id"]))
    who = str(row["header__context"] or "")
    return number, seen(place, operation, str(row["header__stream_position"]), values, f"{where} {number}", who)


def _told(row: Mapping[str, Any]) -> bool:
    return str(row["header__change_oper"]) != "B"


def _in_order(rows: Iterable[tuple[str, Seen]]) -> list[Seen]:
    """The changes in the order of their numbers."""
    return [one for _, one in sorted(rows, key=lambda pair: pair[0])]


def fell(output: str, numbers: Sequence[str], who: str) -> list[Finding]:
    """What is to be said of numbers that came below others, and were missed by somebody."""
    if not numbers:
        return []
    why = f"{len(numbers)} of them, {numbers[0]} first: they were missed by somebody who {who}"
    return [Finding(what="numbers fell", output=output, why=why)]


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0


def _ours(name: str) -> bool:
    """What eventlog may keep for itself beside documents: hidden, or with an underscore, but no part of a document."""
    return name.startswith(("_", ".")) and not name.endswith(".part")


def same_numbers(output: str, rows: Iterable[tuple[str, Seen]]) -> list[Finding]:
    """The numbers that two changes have."""
    known: dict[str, Seen] = {}
    found: list[Finding] = []
    for number, one in rows:
        other = known.setdefault(number, one)
        if other is not one:
            why = f"{number} to rows {other.record} and {one.record}"
            found.append(Finding(what="a number was given twice", output=output, place=one.place, why=why))
    return found
