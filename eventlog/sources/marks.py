"""What must survive a crash: named marks beside the log or in a file, and how the batch in hand is written as text."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from eventlog.core.durable_files import write_file
from eventlog.core.errors import DataError, SourceError, shortened
from eventlog.core.secrets import masked

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.log import Log

IN_HAND: Final = "in hand"
"""The record_ids that were handed out and are not settled."""

RETRIED: Final = "retried"
"""The record_ids that were offered, not taken, and wait for their next attempt."""

HELD: Final = "held"
"""The record_ids that somebody holds."""

HOLDING: Final = "holding"
"""Another text each time that somebody holds, releases or requeues rows, or tracks tables: what a reader knows of that is old."""

TRACKED: Final = "tracked"
"""Another text each time that somebody tracks tables: they may have other columns than before."""

BEHIND: Final = "behind"
"""That the companion table says of rows which other row they wait for."""

PACE: Final = "pace"
"""How many rows were settled in the last minute."""

OUTPUTS: Final = "outputs"
"""How each output stands, for those who look; nothing that is published depends on it."""

UNREAD: Final = "unread"
"""Tables that the publisher may not read, and what the database said of them."""

NOT_FOLLOWED: Final = "not followed"
"""Tables whose triggers the publisher could not make anew, and why."""

PUBLISHER: Final = "publisher"
"""Who holds the lock of the log, and until when: see sources/holder.py."""

LOG: Final = "log"
"""Which log this is, for ever: a UUID that whoever takes the lock for the first time makes. A copy of a log has it too."""

EPOCH: Final = "epoch"
"""A number that grows each time that somebody takes the lock."""

NOTE: Final = "note: "
"""What the names of notes about the batch in hand begin with."""

_MENDED: Final = "Somebody else has written it; restore the table of marks from a backup."
_runs = re.compile(r"(-?\d+)(?:\.\.(-?\d+))?(?:,|$)")


class Marks:
    """The marks of a log, in its companion table: they change together with the rows that they speak of."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def get(self, connection: Connection, name: str) -> str | None:
        """The mark's text, or None when there is none."""
        found = connection.execute(self._log.query("mark_read"), {"name": name}).scalar()
        return None if found is None else str(found)

    def all(self, connection: Connection) -> dict[str, str]:
        """Every mark by its name."""
        return {str(name): str(value) for name, value in self._log.rows(connection, self._log.query("marks_read"))}

    def set(self, connection: Connection, name: str, value: str) -> None:
        """Makes or replaces a mark in the caller's transaction."""
        connection.execute(self._log.query("mark_write"), {"name": name, "value": value})

    def clear(self, connection: Connection, name: str) -> None:
        """Takes a mark away in the caller's transaction."""
        connection.execute(self._log.query("mark_clear"), {"name": name})

    def clear_batch(self, connection: Connection) -> None:
        """Takes the batch in hand and all notes away in the caller's transaction."""
        connection.execute(self._log.query("batch_clear"))

    def clear_notes(self, connection: Connection) -> None:
        """Takes all notes away in the caller's transaction."""
        connection.execute(self._log.query("notes_clear"))


def notes_of(marks: Mapping[str, str]) -> dict[str, str]:
    """The notes among the marks, by their own names; those of versions that had passwords in names are found as well."""
    found = {name.removeprefix(NOTE): text for name, text in marks.items() if name.startswith(NOTE)}
    return {masked(name): text for name, text in found.items()} | {
        name: text for name, text in found.items() if masked(name) == name
    }


def note_name(name: str) -> str:
    """The mark that a note is kept in."""
    return f"{NOTE}{name}"


def next_epoch(former: str | None, now: dt.datetime) -> int:
    """The epoch after the one that the mark says: not below the clock, so that a restored log does not fall behind."""
    milliseconds = (now - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1)
    before = int(former) if former is not None and former.isdecimal() else 0
    return max(before + 1, milliseconds)


class FileMarks:
    """Marks of a source that has no database to write to: one JSON file, replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._marks = self._read()

    def get(self, name: str) -> str | None:
        """The mark's text, or None when there is none."""
        return self._marks.get(name)

    def all(self) -> dict[str, str]:
        """Every mark by its name."""
        return dict(self._marks)

    def change(self, changes: Mapping[str, str | None]) -> None:
        """Makes or replaces marks and takes away those with None, all at once; durable when it returns."""
        marks = {**self._marks, **changes}
        self._write({name: value for name, value in marks.items() if value is not None})

    def set(self, name: str, value: str) -> None:
        """Makes or replaces a mark, durable when it returns."""
        self._write({**self._marks, name: value})

    def clear(self, name: str) -> None:
        """Takes a mark away, durable when it returns."""
        if name in self._marks:
            self._write({other: value for other, value in self._marks.items() if other != name})

    def _read(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SourceError(f"The marks in {self.path} cannot be read: {error.strerror}.") from error
        except msgspec.DecodeError as error:
            hint = "Restore the file; without it the source begins anew and repeats what was published."
            raise DataError(f"{self.path} does not hold marks: {error}.", hint=hint) from error

    def _write(self, marks: dict[str, str]) -> None:
        try:
            write_file(self.path, msgspec.json.format(msgspec.json.encode(marks), indent=2) + b"\n")
        except OSError as error:
            raise SourceError(f"The marks in {self.path} cannot be written: {error.strerror}.") from error
        self._marks = marks


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Stretches of numbers that follow each other without a gap, first and last, in the order given."""
    numbers = list(numbers)
    if numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return [(numbers[0], numbers[-1])]  # by far the most common, and told without a look at each
    found: list[tuple[int, int]] = []
    first = last = None
    for number in numbers:
        if first is None or last is None:
            first = number
        elif number != last + 1:
            found.append((first, last))
            first = number
        last = number
    if first is not None and last is not None:
        found.append((first, last))
    return found


def write_runs(numbers: Sequence[int]) -> str:
    """The numbers as text, such as `60..62,70`, in their order."""
    return ",".join([str(first) if first == last else f"{first}..{last}" for first, last in runs(numbers)])


def read_runs(text: str) -> list[int]:
    """The numbers that `write_runs` wrote, in their order."""
    numbers: list[int] = []
    at = 0
    while at < len(text):
        match = _runs.match(text, at)
        if match is None or (match.end() == len(text) and text.endswith(",")):
            raise DataError(
                f"The mark {shortened(text)!r} is not a list of numbers (character {at + 1}).", hint=_MENDED
            )
        first = int(match[1])
        numbers.extend(range(first, int(match[2] or first) + 1))
        at = match.end()
    return numbers
