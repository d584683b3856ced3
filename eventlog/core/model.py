"""The words of the domain: what was captured, what a consumer is given, what became of it.

Values here are frozen and keyword-only. They are msgspec structs because one Event and one Outcome
are made for every row of the log: a frozen dataclass costs ten times as much, and structs without
reference cycles can be left out of the garbage collector's walk, which keeps a million of them
linear.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from itertools import repeat
from typing import Final, Literal, overload

from msgspec import Struct


class Absent(Enum):
    """The type of ABSENT."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent.ABSENT
"""Not captured, or no longer there; never the same as None, which is the database's NULL."""

Value = str | int | float | bool | bytes | Decimal | dt.datetime | dt.date | dt.time | None
Cell = Value | tuple[Value, ...]
"""One attribute of a row that was read: a value, or the values of a child table's column."""
CellOrAbsent = Cell | Literal[Absent.ABSENT]
"""What a column has; ABSENT where nobody captured it."""
Row = Mapping[str, Cell]
Position = tuple[int, ...]
"""Orders the events of one source; for the log it is (record_id,)."""
LARGEST_NUMBER: Final = 2**63 - 1
"""What no number of a row reaches, with room beside it in 64 bits."""
REFRESH: Final = "eventlog refresh"
"""The perpetrator of rows that nobody changed: `eventlog refresh` wrote them, for a full load."""
REFRESH_FOR: Final = f"{REFRESH} for "
"""So begins the perpetrator of those that are for one output alone; the output's name follows."""
EVERY_ROW: Final = "*"
"""The key of a row that is about a whole table, as of a TRUNCATE. No other is written so."""


class Kind(IntEnum):
    """What a log row says happened; the number is `event_type`."""

    INSERT_FIELD = 1
    UPDATE_FIELD = 2
    REPLACE_FIELD = 3
    DELETE_ROW = 4
    INSERT_ROW_BACK = 5
    UPDATE_ROW_BACK = 6
    INSERT_FIELD_BACK = 7
    UPDATE_FIELD_BACK = 8


def find_refreshed_output(perpetrator: str | None) -> str:
    """Return the one output addressed by a row of `eventlog refresh`; an empty text for every other row."""
    if perpetrator is None or not perpetrator.startswith(REFRESH_FOR):
        return ""
    return perpetrator[len(REFRESH_FOR) :].rstrip(" ")  # a CHAR column pads it


class Op(StrEnum):
    """What a Change does to its object."""

    ADD = "add"
    MODIFY = "modify"
    DELETE = "delete"
    TRUNCATE = "truncate"


class Status(StrEnum):
    """The status of a log row. Only NEW is picked up; only the publisher writes the others."""

    NEW = "N"
    SUCCESS = "S"
    WARNING = "W"
    ERROR = "E"
    FATAL = "F"


SEVERITY: Final = {Status.SUCCESS: 0, Status.WARNING: 1, Status.ERROR: 2, Status.NEW: 3, Status.FATAL: 4}
"""Of several answers for one event the worst counts; to be asked again is worse than an error."""


class Reason(StrEnum):
    """Why an Event ended with its Status."""

    PUBLISHED = "published"
    SUPERSEDED = "superseded"
    VANISHED = "vanished"
    LOOPBACK = "loopback"
    NOTHING = "nothing"
    NOT_DUE = "not due"
    HELD = "held"
    RESTORED = "restored"
    BEHIND = "behind"
    NO_ROOM = "no room"
    NO_RIGHT = "no right"
    LOCKED = "locked"
    UNCONFIRMED = "unconfirmed"
    DAMAGED = "damaged"
    GOES_ON = "goes on"
    INVALID = "invalid"
    REFUSED = "refused"
    FILTERED = "filtered"
    ALTERED = "altered"
    SKIPPED = "skipped"
    FORGOTTEN = "forgotten"
    RETRY = "retry"


TABLE_FAULTS: Final = frozenset({Reason.NO_RIGHT, Reason.LOCKED, Reason.DAMAGED, Reason.UNCONFIRMED})
"""Reasons why a whole table cannot be read back now."""


class Unreadable(Struct, frozen=True, kw_only=True, gc=False):
    """What a read-back says of an object instead of a row: why it cannot be read, or not all of it.

    `row` are the attributes that could be read. A reason that leaves events waiting (NO_ROOM,
    TABLE_FAULTS) leaves all.
    """

    note: str
    reason: Reason = Reason.INVALID
    row: Row = {}


ReadBack = Row | Unreadable
"""What a read-back says of an object that is there."""


class RowId(Struct, frozen=True, gc=False, order=True):
    """An object: schema, table and canonical key."""

    schema: str | None
    table: str
    key: str


class Transaction(Struct, frozen=True, kw_only=True, gc=False):
    """A transaction of the source: its number, which is compared for equality only, and when it was
    committed (UTC).

    `end` is where it ended, in a stream that gives numbers again; `row` is the number of its first row
    in the log that a stream was captured into.
    """

    id: int
    time: dt.datetime | None = None
    end: int | None = None
    row: int | None = None

    @property
    def mark(self) -> int:
        """Return a number unique among the transactions of its source."""
        if self.row is not None:
            return self.row
        return self.id if self.end is None else self.end


class Who(Struct, frozen=True, gc=False):
    """Who is behind a change: the database's user, and what the application said in its session."""

    user: str | None = None
    context: str | None = None


Texts = Sequence[str | Absent | None]
"""The values of one side of an image."""


class RowImage(Struct, frozen=True, kw_only=True, gc=False):
    """The whole row that a row of the log brings, by the `names` of the definition with this `number`:
    every value as canonical text, before and after the change, None where there was no row or
    nobody noted it. ABSENT is what one side alone does not have.
    """

    number: int
    names: tuple[str, ...]
    before: Texts | None = None
    after: Texts | None = None

    def row(self, values: Texts | None) -> dict[str, str | None]:
        """Map one side's values to their names; an empty map where there was no row."""
        named = zip(self.names, values or (), strict=values is not None)
        return {name: value for name, value in named if value is not ABSENT}


class Event(Struct, frozen=True, kw_only=True, gc=False):
    """One captured fact about one row, as a log has it: nothing here has been checked yet.

    With a `fault` nothing can be told of it but why. With an `image` it stands for the field rows
    of its change: its kind is theirs. `stream` is where the source's own log has it, as in Change. `who` is
    behind it, where an output or the rules ask for that.
    """

    position: Position
    kind: int | None
    table: str | None
    key: str | None
    column: str | None = None
    old: str | None = None
    new: str | None = None
    time: dt.datetime | str | None = None
    perpetrator: str | None = None
    transaction: Transaction | None = None
    fault: str | None = None
    image: RowImage | None = None
    stream: str | None = None
    who: Who | None = None


class Image(Struct, frozen=True, kw_only=True, gc=False):
    """One captured change of a whole row, or of a whole table, as a stream of committed
    transactions has it.

    `before` and `after` hold the columns that were captured, by their names in the catalog. A
    change of the key comes as two images, the end of one object and the beginning of another.
    `place` is its number in its transaction, from 1; `last` says that none follows there. `stream`
    is where the source's own log has it, in the source's writing. With a `fault` nothing can be
    told of it but why.
    """

    position: Position
    op: Op
    table: str
    before: Row | None = None
    after: Row | None = None
    time: dt.datetime | None = None
    perpetrator: str | None = None
    transaction: Transaction | None = None
    place: int | None = None
    last: bool = False
    stream: str | None = None
    fault: str | None = None


Captured = Event | Image
"""What a source hands out: a log's rows, or a stream's images; never both in one batch."""


class Edit(Struct, frozen=True, gc=False):
    """One column of a Change. `reset` means that all former values go before `new` comes.

    A column without an Edit was not captured. `old` is ABSENT where nobody noted it, `new` is
    ABSENT where there is none; None is NULL. Several values, of a child table, come as a tuple.
    """

    column: str
    old: CellOrAbsent = ABSENT
    new: CellOrAbsent = ABSENT
    reset: bool = False


class ImageEdits(Struct, frozen=True, gc=False, eq=False):
    """The edits of an image: one for each of its columns, also where the value stayed.

    They are made anew whenever somebody goes through them: of a wide row with few changes most are never asked for.
    """

    names: tuple[str, ...]
    before: Texts | None = None
    after: Texts | None = None
    reset: bool = False

    def __iter__(self) -> Iterator[Edit]:
        before = repeat(ABSENT) if self.before is None else self.before
        after = repeat(ABSENT) if self.after is None else self.after
        return map(Edit, self.names, before, after, repeat(self.reset))

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> Edit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Edit, ...]: ...
    def __getitem__(self, index: int | slice) -> Edit | tuple[Edit, ...]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | ImageEdits) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def changed(self) -> tuple[Edit, ...]:
        """Make those edits whose values differ."""
        if self.before is None or self.after is None:
            return tuple(self)
        sides = zip(self.names, self.before, self.after, strict=True)
        return tuple([Edit(name, old, new) for name, old, new in sides if old != new])


Edits = tuple[Edit, ...] | ImageEdits
"""The edits of a change."""

FEW_NUMBERS = 1000
"""So many are sorted sooner than looked through twice; more may not all fit into memory."""


class Change(Struct, frozen=True, kw_only=True, gc=False):
    """What a consumer is given: one object, one operation, its edits, and the events it is made of,
    in their order.

    `whole` says that the edits are the images of a row: an attribute whose old value equals its new
    one was captured and did not change. `transaction`, `stream` and `who` are those of its
    last event, where they are known. `refresh` says that nothing happened: a full load tells the row as it is,
    all of it. `created` says that a modify is the first that is told of a new object: its values
    were read back, and XDS has no add for that. `beside` is what the row has in other attributes,
    as far as a policy has asked for them. `route` is where it goes, if not where all go. `only` is
    the one output that gets it, where not all do. `looked` is what policies have found in
    rows of other tables; ABSENT is what could not be read. `called` are the keys of objects that its
    values name, as their rows spell them, where several texts are one key.
    """

    row: RowId
    op: Op
    edits: Edits = ()
    positions: tuple[Position, ...]
    time: dt.datetime | str | None = None
    whole: bool = False
    transaction: Transaction | None = None
    stream: str | None = None
    refresh: bool = False
    created: bool = False
    beside: Row | None = None
    route: str = ""
    only: str = ""
    who: Who | None = None
    looked: Mapping[str, CellOrAbsent] | None = None
    called: Mapping[RowId, str] | None = None

    @property
    def event_id(self) -> str:
        """Return the number of its event, or lowest-highest. Unique: an event is in one change only."""
        positions = self.positions
        if len(positions) == 1:
            position = positions[0]
            return str(position[0]) if len(position) == 1 else format_position(position)
        ordered = sorted(positions) if len(positions) < FEW_NUMBERS else (min(positions), max(positions))
        low, high = ordered[0], ordered[-1]
        if len(low) == 1 == len(high):
            return f"{low[0]}-{high[0]}"
        return f"{format_position(low)}-{format_position(high)}"


class Outcome(Struct, frozen=True, kw_only=True, gc=False):
    """What became of one Event. `winner` superseded it: it is settled when the winner is."""

    position: Position
    status: Status = Status.SUCCESS
    reason: Reason = Reason.PUBLISHED
    note: str | None = None
    unread: bool = False
    """Nobody could read what the receiver answered: it may have taken the event."""
    winner: Position | None = None


class Outcomes(Sequence[Outcome]):
    """One outcome for each position, in their order: published, unless `others` says something
    else.

    Nearly every event is simply published; to make a value for each of them would cost as much as
    reading them.
    """

    __slots__ = ("others", "positions")

    def __init__(self, positions: Sequence[Position], others: Mapping[Position, Outcome]) -> None:
        self.positions = positions
        self.others = others

    def __len__(self) -> int:
        return len(self.positions)

    @overload
    def __getitem__(self, index: int) -> Outcome: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Outcome]: ...
    def __getitem__(self, index: int | slice) -> Outcome | Sequence[Outcome]:
        if isinstance(index, slice):
            return [self._of(position) for position in self.positions[index]]
        return self._of(self.positions[index])

    def __iter__(self) -> Iterator[Outcome]:
        return map(self._of, self.positions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # equal to lists, which have no hash either

    def __repr__(self) -> str:
        return repr(list(self))

    def _of(self, position: Position) -> Outcome:
        return self.others.get(position) or Outcome(position=position)


def exceptional(outcomes: Sequence[Outcome]) -> Iterable[Outcome]:
    """Return the outcomes other than simply published."""
    if isinstance(outcomes, Outcomes):
        return outcomes.others.values()
    return outcomes


Count = int | Mapping[str, int]
"""How many changes were published of a transaction: of all tables, or of each by its name."""


class CutTransaction(Struct, frozen=True, array_like=True, gc=False):
    """A cut transaction: what went out before and after a document, and whether it ends there."""

    id: int
    before: Count
    after: Count
    ends: bool


class Document(Struct, frozen=True, kw_only=True):
    """Encoded output. Its id is the same when the batch is repeated; `covers` maps event-ids to the
    events behind.

    `cut` are the transactions that it has a part of, in formats that count what they write of a
    transaction. `route` is the folder, address or topic it goes to, if not where all go.
    """

    id: str
    body: bytes
    covers: Mapping[str, tuple[Position, ...]]
    cut: tuple[CutTransaction, ...] = ()
    route: str = ""


class Refusal(Struct, frozen=True, kw_only=True):
    """A Change that a format cannot express, and why; its events end as errors and the rest goes
    on.

    A `partial` one is about single values: the Change itself is published without them, or with
    others in their places. A `filtered` one is no error: a policy of the output leaves the Change
    out. With `lacks` the receiver has not all that the row has: a change before this one was refused.
    """

    positions: tuple[Position, ...]
    note: str
    partial: bool = False
    filtered: bool = False
    lacks: bool = False

    @property
    def reason(self) -> Reason:
        """Return the reason of its events."""
        if self.filtered:
            return Reason.FILTERED
        return Reason.ALTERED if self.partial else Reason.REFUSED


def format_position(position: Position) -> str:
    """Write a position for people: the record_id, or the numbers joined by dots."""
    if len(position) == 1:
        return str(position[0])
    return ".".join(map(str, position))
