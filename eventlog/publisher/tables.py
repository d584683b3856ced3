"""The rows of the journal's tables, as values: outputs, documents that were planned, rows that wait."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DataError, shorten
from eventlog.core.model import EVERY_ROW, Count, CutTransaction, Document, Outcome, Position, Reason, Status
from eventlog.core.times import moment
from eventlog.sources.marks import RowRanges, Run, as_text

EVER: Final = -(2**63)
"""A number below that of every row."""

LAST_NUMBER: Final = 2**63 - 1
"""No row of a log has a number above it."""

CONVERSION_PLAN: Final = "convert:"
"""Begins the plan of an output that is a conversion which marks its rows; no other plan begins so."""

PLANNED: Final = "planned"
"""Stands in the column `has` of a conversion from the moment on when something of it may appear."""

T = TypeVar("T")

_since = re.compile(r"since (\S+ \S+) UTC ").match


BY_PUBLISHER: Final = "by the publisher"
"""Whose fault a pause is of that nobody has asked for: it says why."""


def write_pause(by: str, why: str = "") -> str:
    """Say since when an output is paused, by whom and why."""
    since = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"since {since} UTC {by}" + (f": {why}" if why else "")


class JournalRow(Struct, frozen=True, kw_only=True):
    """One output. `plan` is the last that it was given, and `has` the one before it, which its
    target has. `told` is how much of each unfinished transaction it got.
    """

    name: str
    position: int
    plans: int = 0
    plan: str = ""
    target_plan: str = ""
    paused: str | None = None
    transactions: Mapping[int, Count] = {}
    warning: str | None = None
    """What was found about its target that somebody should know."""
    recent: str = ""
    """The rows of its last plans, as `plans.add_recent` writes them."""
    restored: int | None = None
    """The highest row that its target may have though the log, restored since, does not know it."""

    @property
    def paused_at(self) -> float | None:
        """Return the time of its pause, in seconds since 1970; None without a pause or a time."""
        since = _since(self.paused or "")
        if since is None or (at := moment(since[1])) is None:
            return None
        return at.replace(tzinfo=dt.UTC).timestamp()

    @property
    def is_conversion(self) -> bool:
        """Return True for a conversion with rows to mark: no output of a publisher."""
        return self.plan.startswith(CONVERSION_PLAN)

    @property
    def is_planned(self) -> bool:
        """Return True for a conversion of which something may have appeared."""
        return self.is_conversion and self.target_plan == PLANNED

    @classmethod
    def read(cls, row: Sequence[Any]) -> JournalRow:
        name, position, plans, plan, target_plan, paused, transactions, warning, recent, restored = row
        return cls(
            name=str(name),
            position=whole(position, f"position of the output {name}"),
            plans=whole(plans, f"plans of the output {name}"),
            plan=plan or "",
            target_plan=target_plan or "",
            paused=paused,
            transactions={}
            if transactions is None
            else decode(transactions, dict[int, Count], f"output.transactions of {name}"),
            warning=warning,
            recent=recent or "",
            restored=None if restored is None else whole(restored, f"restored of the output {name}"),
        )

    def to_columns(self) -> dict[str, Any]:
        """Write the table's columns: no text is empty there, for Oracle would not keep it."""
        return {
            "name": self.name,
            "position": self.position,
            "plans": self.plans,
            "plan": self.plan or None,
            "target_plan": self.target_plan or None,
            "transactions": as_text(self.transactions) if self.transactions else None,
            "warning": self.warning,
            "recent": self.recent or None,
            "restored": self.restored,
        }


FOR_SOMEBODY: Final = (Reason.HELD.value, Reason.RESTORED.value)
"""Why a row waits until somebody releases it, or resumes its output."""


class Parked(Struct, frozen=True, kw_only=True):
    """A row that waits for one output. Without `due` it waits for somebody who holds it, or behind an
    earlier row of its object.
    """

    output: str
    record: int
    object: str
    reason: str
    note: str | None = None
    attempts: int = 0
    due: int | None = None

    @property
    def is_held(self) -> bool:
        """Return True if it is held; one behind another row says that first."""
        return self.due is None and self.reason in FOR_SOMEBODY

    @property
    def leads(self) -> bool:
        """Return True if it decides when rows of its object may go."""
        return self.due is not None or self.is_held

    def waits_at(self, now: int) -> bool:
        """Return True if it waits by itself, and not behind another row."""
        return self.is_held or (self.due is not None and self.due > now)

    @classmethod
    def read(cls, output: str, row: Sequence[Any]) -> Parked:
        """Read a row of `parked_rows` and `parked_last`."""
        record, name, reason, attempts, due = row
        return cls(
            output=output,
            record=int(record),
            object=str(name),
            reason=str(reason),
            attempts=int(attempts),
            due=None if due is None else int(due),
        )

    def to_columns(self) -> dict[str, Any]:
        """Write the table's columns."""
        return {
            "output": self.output,
            "record_id": self.record,
            "object": self.object,
            "reason": self.reason,
            "note": self.note or None,
            "attempts": self.attempts,
            "due": self.due,
        }


class Detail(Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """A document that may be on its way: its id, the rows behind it that still wait for what
    becomes of it, and what ends with them; `cut` are the transactions that it has a part of.
    """

    document: str
    records: tuple[int, ...]
    said: tuple[Outcome, ...] = ()
    cut: tuple[CutTransaction, ...] = ()

    def without(self, gone: RowRanges) -> Detail:
        """Copy it without rows no longer waiting."""
        return replace(self, records=tuple(record for record in self.records if record not in gone))


class OnTheWay(Struct, frozen=True, kw_only=True, dict=True):
    """Documents of one plan that may be on their way. A target that can be asked what it has gets
    all of a plan in one; for one that cannot each document stands alone, with the objects that it
    speaks of and all that it takes to send it again as it is.
    """

    plan: str
    place: int
    details: Sequence[Detail]
    objects: Mapping[str, int] = {}
    """Its objects, each with the first row of it here."""
    covers: Mapping[str, tuple[Position, ...]] | None = None
    body: str | None = None
    route: str = ""
    attempts: int = 0
    due: int = 0

    @cached_property
    def records(self) -> RowRanges:
        """Return the rows behind its documents."""
        return RowRanges.of(chain.from_iterable(map(attrgetter("records"), self.details)))

    @property
    def key(self) -> tuple[str, int]:
        """Return its key in the table, of one output."""
        return self.plan, self.place

    def is_behind(self, rows: Mapping[str, int]) -> bool:
        """Return True if one of these rows is before all rows of its object here, or the first of
        them.
        """
        if not rows:
            return False
        any_row, every_row = min(rows.values()), rows.get(EVERY_ROW, LAST_NUMBER)
        for name, first in self.objects.items():
            before = any_row if name == EVERY_ROW else min(rows.get(name, LAST_NUMBER), every_row)
            if before <= first:
                return True
        return False

    def split(self, has: Callable[[str], bool]) -> tuple[list[OnTheWay], list[OnTheWay]]:
        """Split the documents into those a target has and the others."""
        there: list[Detail] = []
        missing: list[Detail] = []
        for detail in self.details:
            (there if has(detail.document) else missing).append(detail)
        return [replace(self, details=there)] if there else [], [replace(self, details=missing)] if missing else []

    def again(self) -> Document:
        """Make the one document as it was."""
        body, covers = (self.body or "").encode(), self.covers or {}
        return Document(id=self.details[0].document, body=body, covers=covers, route=self.route)

    def to_columns(self, output: str) -> dict[str, Any]:
        """Write the table's columns."""
        return {
            "output": output,
            "plan": self.plan,
            "place": self.place,
            "documents": len(self.details),
            "records": as_text(self.records.parts),
            "details": as_text(self.details),
            "objects": as_text(self.objects) if self.objects else None,
            "covers": None if self.covers is None else as_text(self.covers),
            "body": self.body or None,
            "route": self.route or None,
            "attempts": self.attempts,
        }

    @classmethod
    def read(cls, row: Sequence[Any]) -> OnTheWay:
        """Read a row of `planned_read`."""
        plan, place, details, objects, covers, body, route, attempts, due = row
        where = f"of plan {plan}, place {place}"
        return cls(
            plan=str(plan),
            place=int(place),
            details=decode(details, list[Detail], f"details {where}"),
            objects={} if objects is None else decode(objects, dict[str, int], f"objects {where}"),
            covers=None if covers is None else decode(covers, dict[str, tuple[Position, ...]], f"covers {where}"),
            body=body,
            route=route or "",
            attempts=int(attempts),
            due=int(due),
        )


def decode(text: str, kind: type[T], where: str) -> T:
    """Decode a text of `as_text`; raise DataError if it is something else. `where` is a column and its
    row.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, TypeError) as error:  # TypeError: it is no text at all
        raise unreadable(where, str(error)) from error


def read_ranges(text: str, where: str) -> RowRanges:
    """Read the rows of a column `records`; raise DataError where somebody else has written it."""
    runs = decode(text, list[Run], where)
    for first, last in runs:
        if first > last:
            raise unreadable(where, f"a range of rows is from {first} to {last}")
    return RowRanges(runs)


def whole(value: Any, where: str) -> int:
    """Read a number; raise DataError if somebody has written a text there, as some databases let them."""
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise unreadable(where, f"{shorten(str(value))!r} is no number") from error


def runs_of(rows: RowRanges) -> list[dict[str, int]]:
    """Write the runs of rows as values of a statement."""
    return [{"first": first, "last": last} for first, last in rows.parts]


def outcome_of(number: int, status: str, reason: str, note: str | None) -> Outcome:
    """Read the outcome of a row at one output; raise DataError where somebody else has written it."""
    try:
        return Outcome(position=(number,), status=Status(status), reason=Reason(reason), note=note)
    except ValueError as error:
        raise unreadable(f"an output's status of row {number}", str(error)) from error


def unreadable(where: str, problem: str) -> DataError:
    """Make the error for a column with somebody else's value."""
    hint = "Stop the publisher, and restore the log with its tables from a backup."
    return DataError(f"The journal beside the log cannot be read, {where}: {problem.rstrip('.')}.", hint=hint)
