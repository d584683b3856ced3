"""A source, rows, a format and a sink that live in memory: they remember what they were told and fail when asked to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from eventlog.core.errors import SinkError
from eventlog.core.model import (
    Change,
    Document,
    Event,
    Kind,
    Outcome,
    Position,
    ReadBack,
    Reason,
    Refusal,
    RowId,
    Status,
)
from eventlog.core.schema import Catalog
from eventlog.core.seams import Resolved, SinkCapabilities, Tenure, Writer

Log = list[str]


class MemoryRows:
    """Answers from a dictionary and remembers what was asked."""

    def __init__(self, rows: Mapping[RowId, ReadBack]) -> None:
        self.known = rows
        self.asked: list[Mapping[RowId, frozenset[str]]] = []

    def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
        self.asked.append(wanted)
        return {row: values for row, values in self.known.items() if row in wanted}


class OneEach:
    """One document a change; refuses changes of the object that it is told to."""

    suffix = ".txt"
    counts = False

    def heartbeat(self) -> None:
        """Send nothing: this format has no heartbeat."""

    def __init__(self, refused: str | None = None) -> None:
        self.refused = refused
        self.after: list[str] = []

    def writer(self, catalog: Catalog | None) -> Writer:
        return self._write

    def bind(self, written: Iterable[Change], after: str, whole: bool = False) -> Iterator[Document]:
        self.after.append(after)
        changes = list(written)
        for group in [changes] * bool(changes) if whole else [[change] for change in changes]:
            body = "; ".join(f"{change.op} {change.row.key}" for change in group).encode()
            covers = {change.event_id: change.positions for change in group}
            yield Document(id=group[-1].event_id, body=body, covers=covers)

    def _write(self, changes: Iterable[Change]) -> Iterator[Change | Refusal]:
        for change in changes:
            refused = change.row.key == self.refused
            yield Refusal(positions=change.positions, note="cannot be said.") if refused else change


class Several:
    """Documents of so many changes, called after the last event in them."""

    suffix = ".txt"
    counts = False

    def heartbeat(self) -> None:
        """Send nothing: this format has no heartbeat."""

    def __init__(self, size: int) -> None:
        self.size = size

    def writer(self, catalog: Catalog | None) -> Writer:
        return iter

    def bind(self, written: Iterable[Change], after: str, whole: bool = False) -> Iterator[Document]:
        waiting = list(written)
        size = len(waiting) or 1 if whole else self.size
        for start in range(0, len(waiting), size):
            group = waiting[start : start + size]
            covers = {change.event_id: change.positions for change in group}
            yield Document(id=f"{group[-1].positions[-1][0]:03}", body=b"", covers=covers)


class UnaskedSink:
    """What a sink has to do where nobody else writes, and nobody can ask."""

    @property
    def capabilities(self) -> SinkCapabilities:
        return SinkCapabilities()

    def open(self, tenure: Tenure | None) -> None:
        """Do nothing: nobody else writes here."""

    def last(self) -> str:
        return ""

    def resolve(self, plan: str) -> Resolved:
        return Resolved()

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        """Do nothing: `commit` does it all."""

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""


class MemorySink(UnaskedSink):
    """Keeps documents and answers for events as it is told to, or fails at a document."""

    def __init__(self, log: Log, answers: Mapping[int, Status] | None = None, fails_at: str | None = None) -> None:
        self.log = log
        self.answers = answers or {}
        self.fails_at = fails_at
        self.taken: dict[str, bytes] = {}
        self.routes: dict[str, str] = {}
        self.sizes: list[int] = []

    def last(self) -> str:
        return max(self.taken, default="")

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        self.log.append("write")
        self.sizes.append(len(documents))
        for document in documents:
            if document.id == self.fails_at:
                raise SinkError("The disk is full.")
            self.taken[document.id] = document.body
            self.routes[document.id] = document.route
        covered = [position for document in documents for found in document.covers.values() for position in found]
        return [answer(position, self.answers[position[0]]) for position in covered if position[0] in self.answers]

    def close(self) -> None:
        self.log.append("close")


def answer(position: Position, status: Status) -> Outcome:
    reason = Reason.RETRY if status is Status.NEW else Reason.REFUSED
    return Outcome(position=position, status=status, reason=reason, note="said the receiver.")


def event(number: int, kind: Kind = Kind.INSERT_FIELD, key: str = "idu=1", column: str | None = "fname") -> Event:
    time = "2026-01-01 00:00:00"
    return Event(position=(number,), kind=kind, table="usr", key=key, column=column, new="x", time=time)


def inserts(count: int) -> list[Event]:
    """Make events inserting one object each."""
    return [event(number, key=f"idu={number}") for number in range(1, count + 1)]
