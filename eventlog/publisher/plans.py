"""What a consumer enters in the journal: where rows go, and what became of planned documents."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import EventlogError
from eventlog.core.model import Count, Outcome, Status, Unreadable
from eventlog.publisher.encode import Encoded
from eventlog.publisher.selection import Take
from eventlog.publisher.tables import JournalRow, OnTheWay, Parked
from eventlog.sources.marks import RowRanges

if TYPE_CHECKING:
    from eventlog.core.associations import Association
    from eventlog.publisher.decide import Cause, Decider
    from eventlog.publisher.traces import BatchTrace


class TakeAgainError(EventlogError):
    """Nothing was planned: rows are read again.

    `stale` is what rows name that cannot be read, where tables may look another way by now.
    """

    def __init__(self, message: str, *, stale: frozenset[Cause] | None = None) -> None:
        super().__init__(message)
        self.stale = stale


class TakePlan(Struct, frozen=True, kw_only=True):
    """Where the rows of a take go: into documents, to those that come `again`, or over, unpublished.

    `readable` are tables that could not be read before: the rows of theirs that wait may go. `unread` are tables that
    cannot be read since. `is_asked` says that the target can be asked what it has, and `is_prepared` that its sink has
    prepared the documents already.
    """

    taken: Take
    history: int | None = None
    """What the history of the tables must say still; None where it was asked already."""
    plan: str = ""
    is_asked: bool = False
    planned: Sequence[OnTheWay] = ()
    again: Sequence[Parked] = ()
    readable: Sequence[str] = ()
    over: Collection[int] = ()
    outcomes: Mapping[int, Outcome] = {}
    encoded: Encoded = Encoded()
    decider: Decider | None = None
    unread: Mapping[str, Unreadable] = {}
    trace: BatchTrace | None = None
    is_prepared: bool = False


class FinishedRows(Struct, frozen=True):
    """Rows that got their status, and how many of them which."""

    statuses: Mapping[Status, int] = {}
    records: RowRanges = RowRanges()


class Done(Struct, frozen=True, kw_only=True):
    """What became of planned documents: rows are over unless they come `again` or are `gone`.

    `has` is the plan that the target is known to have, where that is not the last one that it was
    given. `asked` says that the target can be asked what it has. `doubts` is what the journal counted
    when that was asked last. `associations` are what a receiver has said that it calls objects.
    """

    planned: Sequence[OnTheWay]
    asked: bool = False
    doubts: int | None = None
    outcomes: Mapping[int, Outcome] = {}
    again: Sequence[Parked] = ()
    gone: RowRanges = RowRanges()
    transactions: Mapping[int, Count] | None = None
    target_plan: str | None = None
    associations: Mapping[str, Association] = {}


RECENT_CHARACTERS: Final = 1_000
"""Of so much text are the last plans of an output whose rows the journal keeps."""

PROCESSED_STATUSES: Final = {
    **{f"status_{number}": letter for number, letter in enumerate("SWEEE", 1)},
    "any_table": 1,
    "named": "",
}
"""Rows with any of these, of any table, are sent again to a target that has lost them."""

_plan_name = re.compile(r"(\d{12,})-([0-9a-f]{8})-(-?\d+)").fullmatch


class PlanName(NamedTuple):
    """A plan: its number, which grows, what no other one has, and the highest row that its output was given by then."""

    number: int
    token: str
    highest: int


def name_plan(number: int, highest: int) -> str:
    """Name a plan: a growing number, and a token.

    The token tells two publishers apart: one that has lost the lock unaware counts from the same
    number.
    """
    return f"{number:012d}-{secrets.token_hex(4)}-{highest}"


def read_plan(name: str) -> PlanName | None:
    """Read the name of a plan; None where a publisher gives no such name."""
    found = _plan_name(name)
    return None if found is None else PlanName(int(found[1]), found[2], int(found[3]))


def add_recent(recent: str, former: str, plan: str, rows: RowRanges) -> str:
    """Add a plan with its rows to the last ones, which begin with the one before them.

    Each is `NUMBER-TOKEN=ROWS`, and the first ones are dropped.
    """
    recent = f"{recent or _key(former) + '='} {_key(plan)}={rows.text()}"
    too_many = len(recent) - RECENT_CHARACTERS
    if too_many <= 0:
        return recent
    cut = recent.find(" ", too_many - 1) + 1
    return recent[cut:] if cut else f"{_key(plan)}="


def give_plan(row: JournalRow, plan: str, rows: RowRanges | None) -> JournalRow:
    """Return the row of an output that is given a plan; `rows` are those of one that can be asked what it has."""
    recent = row.recent if rows is None else add_recent(row.recent, row.plan, plan, rows)
    return replace(row, plans=row.plans + 1, plan=plan, target_plan=row.plan or row.target_plan, recent=recent)


def split_recent(recent: str, last: str) -> tuple[str, RowRanges] | None:
    """Split the last plans behind the target's: those up to it, and the rows of all later ones.

    None if it is not among them.
    """
    items = recent.split(" ")
    keys = [item.partition("=")[0] for item in items]
    if not recent or (last and read_plan(last) is None) or (key := _key(last)) not in keys:
        return None
    known = keys.index(key) + 1
    rows = [RowRanges.read(item.partition("=")[2]) for item in items[known:]]
    return " ".join(items[:known]), RowRanges.union(rows) if rows else RowRanges()


def _key(plan: str) -> str:
    """Return the part of a plan's name to keep; nothing of none, or of a malformed one."""
    named = read_plan(plan)
    return "" if named is None else f"{named.number}-{named.token}"
