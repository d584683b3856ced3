"""What a receiver's reply means for the events of a document. Pure: the reply's bytes in, outcomes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from eventlog.core.errors import shortened
from eventlog.core.model import Document, Outcome, Position, Reason, Status

if TYPE_CHECKING:
    from eventlog.xds.read import StatusReply

MEANING: Final = {
    "warning": (Status.WARNING, Reason.PUBLISHED),
    "error": (Status.ERROR, Reason.REFUSED),
    "retry": (Status.NEW, Reason.RETRY),
    "fatal": (Status.FATAL, Reason.REFUSED),
}
"""What becomes of an event by the level of its worst status; success, or no status at all, needs no words."""

NOTE_CHARACTERS: Final = 2000


class Reply(Struct, frozen=True, kw_only=True):
    """What a receiver said of a document. `unknown` are event-ids that the document does not have."""

    outcomes: tuple[Outcome, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def ends(self) -> bool:
        """Whether nothing may be sent after it: later changes of an object must not overtake one that is still to come."""
        return any(outcome.status in (Status.NEW, Status.FATAL) for outcome in self.outcomes)


def read_reply(document: Document, body: bytes) -> Reply:
    """The outcomes that a reply gives; an empty one is success. XmlError when it is no reply.

    Statuses are matched by event-id and the worst of several counts; one without event-id speaks of every event.
    """
    if not body.strip():
        return Reply()
    from eventlog.xds.read import read_statuses

    statuses = read_statuses(body)
    named = {status.event_id for status in statuses if status.event_id is not None}
    return Reply(
        outcomes=tuple(_outcomes(document, statuses)),
        unknown=tuple(sorted(named.difference(document.covers))),
    )


def again_later(document: Document, why: str) -> Reply:
    """The reply of a receiver of whom nobody knows what it did with the document: it is sent once more."""
    return Reply(outcomes=tuple(_retries(document, why)))


def not_sent(documents: Iterable[Document], behind: Document) -> Iterator[Outcome]:
    """The outcomes of documents that wait because one before them is still to come; no attempt is counted for them."""
    for document in documents:
        for position in _positions(document):
            note = f"not sent, because document {behind.id} before it is still to be taken"
            yield Outcome(position=position, status=Status.NEW, reason=Reason.HELD, note=note)


def _outcomes(document: Document, statuses: Sequence[StatusReply]) -> Iterator[Outcome]:
    by_event: dict[str | None, list[StatusReply]] = {}
    for status in statuses:
        by_event.setdefault(status.event_id, []).append(status)
    of_all = by_event.get(None, [])
    for event_id, positions in document.covers.items():
        yield from _of_event(positions, [*by_event.get(event_id, []), *of_all])


def _of_event(positions: Sequence[Position], statuses: Sequence[StatusReply]) -> Iterator[Outcome]:
    from eventlog.xds.read import worst

    level = worst(status.level for status in statuses)
    if level not in MEANING:
        return
    texts = dict.fromkeys(status.text for status in statuses if status.level is level and status.text)
    note = shortened("; ".join(texts), NOTE_CHARACTERS) or f"the receiver answered {level.value!r} without a word"
    status, reason = MEANING[level]
    for position in positions:
        yield Outcome(position=position, status=status, reason=reason, note=note)


def _retries(document: Document, why: str) -> Iterator[Outcome]:
    for position in _positions(document):
        yield Outcome(position=position, status=Status.NEW, reason=Reason.RETRY, note=why)


def _positions(document: Document) -> Iterator[Position]:
    for positions in document.covers.values():
        yield from positions
