"""The four seams: where changes come from, where rows are read back, what documents look like, who
takes them.

A new database, broker or format implements one of these and passes its conformance suite
(tests/conformance).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from msgspec import Struct

from eventlog.core.model import Change, Document, Outcome, Position, ReadBack, Refusal, RowId, Status
from eventlog.core.schema import Catalog

if TYPE_CHECKING:
    from eventlog.core.associations import Associations, Awaiting


class RowReader(Protocol):
    """Answers read-backs with what stands in the tables now."""

    def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
        """Read the wanted attributes of objects; an object missing in the answer has vanished.

        Say of an unreadable one why.
        """


class Written(Struct, frozen=True, array_like=True, gc=False):
    """One change as it stands in a document, and the events behind it."""

    event_id: str
    positions: tuple[Position, ...]
    text: str
    route: str = ""

    @property
    def place(self) -> Position:
        """Return the position of the last event."""
        return self.positions[-1]


class Countable(Protocol):
    """One change as it is written, which says which one of its transaction's it is once that is
    known.

    One that has a `collection`, as its table is called there, is counted in each table too, by
    `count_by_table(tables, last)`: so many changes of each table were told with it.
    """

    @property
    def positions(self) -> tuple[Position, ...]:
        """Return the positions of the events behind it."""

    @property
    def transaction(self) -> int | None:
        """Return the number of its transaction; None where it is not counted."""

    def counted(self, number: int, last: bool) -> Self:
        """Copy it with its number within its transaction."""


Writer = Callable[[Iterable[Change]], Iterator[Any]]
"""Writes changes one by one: what the format's `bind` takes, or a Refusal where it cannot."""


OnValue = Literal["refuse-object", "omit", "replace"]
"""What becomes of a change with a value that its format cannot say."""


class FormerNames(Enum):
    """By which names an output tells what was captured under a former definition."""

    OWN = auto()
    """As it was captured: the format says what the table looked like then."""
    NEW = auto()
    """By today's names of columns, where they are known, else as it was captured."""
    ONLY_NEW = auto()
    """By today's names, the table's too; what has none is left out, for no policy could name it."""


class Format(Protocol):
    """Turns changes into documents: no I/O, no clock, no memory.

    Changes are written in one place, which may be another process or another machine, and bound
    into documents where their order is known. What is written is a value of the format's own, with
    the `positions` of the events behind it.
    """

    @property
    def suffix(self) -> str:
        """Return the end of its files' names, with the dot."""

    @property
    def counts(self) -> bool:
        """Return True if the format numbers changes in a transaction; writers then return `Countable`."""

    def writer(self, catalog: Catalog | None) -> Writer:
        """Make a writer of changes of these tables, for use again and again; it leaves out empty changes."""

    def bind(self, written: Iterable[Any], after: str, whole: bool = False) -> Iterator[Document]:
        """Join written changes to documents, in order; `after` is the id of the sink's last
        document.

        `whole` makes one document of all: a repeated document must not become two.
        """

    def heartbeat(self) -> Document | None:
        """Write a document that reports health and covers nothing; None where the format has none.

        Its id sorts before every other, and the next one takes its place.
        """


def former_names_of(form: Format) -> FormerNames:
    """Return the format's names for columns of former definitions: its `former_names`."""
    names: FormerNames = getattr(form, "former_names", FormerNames.OWN)
    return names


def on_value_of(form: Format) -> str | None:
    """Return what becomes of a change with a value that the format cannot write: its `on_value`."""
    chosen: str | None = getattr(form, "on_value", None)
    return chosen


def encode(
    form: Format,
    changes: Iterable[Change],
    catalog: Catalog | None = None,
    after: str = "",
    whole: bool = False,
) -> Iterator[Document | Refusal]:
    """Writes and binds: documents in the order of the changes, and refusals as they are met."""
    refusals: list[Refusal] = []

    def write_all() -> Iterator[Any]:
        for item in form.writer(catalog)(changes):
            if isinstance(item, Refusal):
                refusals.append(item)
            else:
                yield item

    for document in form.bind(write_all(), after, whole):
        while refusals:  # they were met on the way to this document
            yield refusals.pop(0)
        yield document
    yield from refusals


class Tenure(Struct, frozen=True, kw_only=True):
    """Who may write to outputs: a log, and the epoch of the publisher that holds its lock.

    `log` identifies the log for ever, `name` is how people know it. `epoch` grows each time that
    somebody takes the lock, so that a target can tell a publisher that has lost it from the one
    that has it.
    """

    log: str
    name: str
    epoch: int


class Lane(Protocol):
    """One of several ways to a receiver, which one thread at a time uses."""

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        """Deliver documents as a sink does."""

    def close(self) -> None:
        """Release its resources."""

    def break_off(self) -> None:
        """Interrupt the work from another thread: `commit` fails until `close` was called."""


class LateAnswer(Struct, frozen=True, kw_only=True):
    """What became of rows of an object that a receiver had only accepted: `awaiting` waits no longer.

    Rows that went well have the status S.
    """

    object: str
    awaiting: Awaiting
    records: tuple[int, ...]
    status: Status
    note: str = ""


class LateAnswers(Protocol):
    """Asks a receiver that answers later what became of what it has accepted."""

    @property
    def seconds(self) -> float:
        """Return how long to wait until it is asked again."""

    def read(self) -> Sequence[LateAnswer]:
        """Read the answers so far; each is given until nothing waits for it any more."""


class SinkCapabilities(Struct, frozen=True, kw_only=True):
    """What a sink can do that not every sink can; None, or no lanes, where it cannot."""

    resolves: bool = False
    """Whether its target can be asked what it has. Where it cannot, `resolve` knows nothing, and
    documents that may be there are handed over again as they were.
    """
    prepares: bool = False
    """Whether `prepare` may begin before the plan ahead is committed, and is worth a thread."""
    lanes: Sequence[Lane] = ()
    """Several ways to its receiver, for those who know which documents may go at the same time;
    `commit` takes one of them, and documents stay in order on it.
    """
    refuses: Callable[[Any], str | None] | None = None
    """Why it will never take what a format wrote of a change, if that is known before; or None."""
    announce: Callable[[Sequence[Document]], None] | None = None
    """Who is told which documents are sent next, in their order, new ones and those that come again."""
    associations: Associations | None = None
    """What its receiver calls objects, which the log keeps for it; None where it need not know."""
    late: LateAnswers | None = None
    """Who asks for answers that come after delivery; what waits for one is among the `associations`."""


class Resolved(Struct, frozen=True, kw_only=True):
    """What a target has. `last` is the plan that it is known to have last, "" for none.

    `documents` are the ids of those documents of the plan in doubt that are there; None is all of
    them. `answers` is what was refused of them then.
    """

    last: str = ""
    documents: frozenset[str] | None = frozenset()
    answers: tuple[Outcome, ...] = ()

    def has(self, document: str) -> bool:
        """Return True if this document of the plan in doubt is there."""
        return self.documents is None or document in self.documents


class Sink(Protocol):
    """Takes documents, plan by plan: prepare – commit, and resolve when nobody knows what became of
    a plan.

    The documents of a plan are the same whenever they are named, and one plan is committed after
    the other. Committing a plan twice is the same as committing it once.
    """

    @property
    def capabilities(self) -> SinkCapabilities:
        """Return abilities beyond these methods."""

    def open(self, tenure: Tenure | None) -> None:
        """Takes the target over and learns how far it is; called whenever the lock of a log was
        taken.

        OccupiedError when a later holder of the lock has it, ConfigError when it belongs to another
        log. Without a tenure it stays whose it is: so a conversion writes, and whoever was writing
        there is stopped.
        """

    def last(self) -> str:
        """Return the id of the last durable document, to number from; "" if there is none."""

    def resolve(self, plan: str) -> Resolved:
        """Find how much of a plan the target has; "" for none. Called after `open` and any error.

        A plan begun to be shown is finished; hidden remains of all others are removed.
        """

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        """Makes documents durable where nobody sees them; most sinks have nothing to do here."""

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        """Shows them in order, durable when it returns. Answers only where a receiver said more
        than 'success'.

        `plan` is the identity under which these documents were noted before: a target that has it
        already takes nothing and answers as it did then. Documents without a plan ("") are taken as
        they are, whenever they come, and so are documents that were not prepared. OccupiedError
        when a later holder of the lock has taken the target over.
        """

    def close(self) -> None:
        """Release its resources; also of a sink that was never opened."""
