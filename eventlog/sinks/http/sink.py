"""The HTTP sink: each document is POSTed, and the receiver's answer says what becomes of its
events.

Law: a document is sent until it was answered. What nobody knows the fate of (a reply cut short, one
that cannot be read) is sent again under the same plan and id, by which the receiver recognises it;
nothing that comes after overtakes it. The epoch of the publisher goes with each document: a
receiver that keeps the highest can refuse one that was replaced.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import OccupiedError, SinkError, XmlError, shorten
from eventlog.core.model import Document, Outcome, Position, Reason, Status
from eventlog.core.seams import Resolved, SinkCapabilities, Tenure
from eventlog.core.secrets import make_readable, mask_secrets
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.http.post import HttpAnswer, Poster, UnreadableAnswer

if TYPE_CHECKING:
    from eventlog.xds.read import StatusReply

MAY_PASS: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
"""Refusals of a request that trying again may get over, besides every 5xx."""

HINTS: Final[dict[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "Check the output's `authorization`.",
    HTTPStatus.FORBIDDEN: "Check the output's `authorization` and what its owner may do.",
    HTTPStatus.NOT_FOUND: "Check the output's `url`.",
    HTTPStatus.METHOD_NOT_ALLOWED: "Check the output's `url`: what is there takes no POST.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Make publisher.batch_size smaller, or let the receiver take more.",
}

_log = logging.getLogger(__name__)


def may_pass(status: int) -> bool:
    """Return True if a retry may succeed after this status."""
    return status in MAY_PASS or status >= HTTPStatus.INTERNAL_SERVER_ERROR


class HttpLane:
    """Sends each document to one address, one after the other, over one connection that is kept."""

    def __init__(self, poster: Poster) -> None:
        self._poster = poster
        self.answered = ""

    def serve(self, tenure: Tenure | None) -> None:
        """Says from now on for which log, and in which epoch, it sends."""
        self._poster.tenure = tenure

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        """Sends them in order until one is not taken for good.

        The rest waits, and what was answered stays answered.
        """
        outcomes: list[Outcome] = []
        for number, document in enumerate(documents):
            try:
                reply = self._send(document, plan)
            except SinkError as error:
                # What was answered before must not be lost with an error: it comes as outcomes.
                if number == 0:
                    raise
                _log.warning("%s", error)
                reply = again_later(document, str(error))
            outcomes.extend(reply.outcomes)
            if reply.ends:
                outcomes.extend(not_sent(documents[number + 1 :], document))
                break
            self.answered = max(self.answered, document.id)
        return outcomes

    def close(self) -> None:
        self._poster.close()

    def break_off(self) -> None:
        """Ends from another thread what is on its way."""
        self._poster.break_off()

    def _send(self, document: Document, plan: str) -> Reply:
        try:
            answer = self._poster.post(document, plan)
            if answer.overtaken:
                raise OccupiedError(
                    f"{self._poster.address} gets its documents from a later publisher.",
                    hint="This one sends nothing more.",
                )
            if not answer.taken:
                raise self._explain_refusal(answer)
            reply = read_reply(document, answer.body, self._poster.discreet)
        except (UnreadableAnswer, XmlError) as error:
            reason = self._poster.discreet(str(error))
            why = f"{self._poster.address} gave an answer that cannot be read: {reason}"
            # The receiver may have taken it: nothing may overtake it, and it comes again by its id.
            _log.warning("%s The document %s is sent again later.", why, document.id)
            return again_later(document, why)
        if reply.unknown:
            ids = make_readable(shorten(self._poster.discreet(", ".join(reply.unknown[:5])), 200))
            address, what = self._poster.address, "answered for events that document"
            _log.warning("%s %s %s does not have: %s.", address, what, document.id, ids)
        return reply

    def _explain_refusal(self, answer: HttpAnswer) -> SinkError:
        """Explain an answer outside 2xx."""
        passes = may_pass(answer.status)
        hint = "It is tried again." if passes else HINTS.get(answer.status)
        if answer.location:
            hint = f"It points to {answer.location}"
            hint = f"{hint}; write the address that takes documents into the output's `url`."
        return SinkError(f"{self._poster.address} answered {answer.summary}.", hint=hint, may_pass=passes)


class HttpSink(HttpLane):
    """Several connections to one address, of which it is the first itself: who hands over one by
    one needs no other.
    """

    lane: ClassVar[type[HttpLane]] = HttpLane

    def __init__(self, settings: HttpSettings, poster: Poster | None = None) -> None:
        poster = poster or Poster(settings)
        super().__init__(poster)
        # Modules that import each other fail when several threads are the first to ask for them.
        # Also where it has one connection: each output that lags has a thread.
        for name in ("eventlog.sinks.http.connection", "urllib3.exceptions", "eventlog.xds.read"):
            import_module(name)
        others = [self.lane(poster.another()) for _ in range(settings.connections - 1)]
        self.lanes: tuple[HttpLane, ...] = (self, *others)

    @property
    def capabilities(self) -> SinkCapabilities:
        return SinkCapabilities(lanes=self.lanes)

    def open(self, tenure: Tenure | None) -> None:
        """Says from now on who sends; nothing is asked of the receiver."""
        for lane in self.lanes:
            lane.serve(tenure)

    def last(self) -> str:
        """Return the id of the last document answered in this process."""
        return max(lane.answered for lane in self.lanes)

    def resolve(self, plan: str) -> Resolved:
        """Know nothing: a receiver cannot be asked; it recognizes repeated documents itself."""
        return Resolved()

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        """Do nothing: a receiver has no hidden documents."""

    def close(self) -> None:
        super().close()
        for lane in self.lanes[1:]:
            lane.close()


MEANING: Final = {
    "warning": (Status.WARNING, Reason.PUBLISHED),
    "error": (Status.ERROR, Reason.REFUSED),
    "retry": (Status.NEW, Reason.RETRY),
    "fatal": (Status.FATAL, Reason.REFUSED),
}
"""What becomes of an event by the level of its worst status.

Success, or no status at all, needs no words.
"""

NOTE_CHARACTERS: Final = 2000


class Reply(Struct, frozen=True, kw_only=True):
    """A receiver's answer to a document.

    `unknown` are event-ids that the document does not have.
    """

    outcomes: tuple[Outcome, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def ends(self) -> bool:
        """Return True if nothing may be sent after it."""
        # Later changes of an object must not overtake one that is still to come.
        return any(outcome.status in (Status.NEW, Status.FATAL) for outcome in self.outcomes)


def read_reply(document: Document, body: bytes, discreet: Callable[[str], str] = mask_secrets) -> Reply:
    """Read the outcomes of a reply; an empty reply is success. Raises XmlError if malformed.

    Statuses match by event-id, the worst of several counts; one without event-id is for every
    event. `discreet` masks secrets in the receiver's texts.
    """
    if not body.strip():
        return Reply()
    from eventlog.xds.read import read_statuses

    # Out of its texts and not of its markup, which a password may be a word of.
    statuses = [replace(status, text=discreet(status.text)) for status in read_statuses(body)]
    named = {status.event_id for status in statuses if status.event_id is not None}
    return Reply(
        outcomes=tuple(_outcomes(document, statuses)),
        unknown=tuple(sorted(named.difference(document.covers))),
    )


def again_later(document: Document, why: str) -> Reply:
    """Return a retry for each event: nobody knows whether the receiver has the document."""
    retries = []
    for position in _positions(document):
        retry = Outcome(position=position, status=Status.NEW, reason=Reason.RETRY, note=why)
        retries.append(replace(retry, unread=True))
    return Reply(outcomes=tuple(retries))


def not_sent(documents: Iterable[Document], behind: Document) -> Iterator[Outcome]:
    """Yield outcomes for documents held behind an unanswered one; no attempt is counted."""
    for document in documents:
        for position in _positions(document):
            note = f"not sent, because document {behind.id} before it is still to be taken"
            yield Outcome(position=position, status=Status.NEW, reason=Reason.HELD, note=note)


def _outcomes(document: Document, statuses: Sequence[StatusReply]) -> Iterator[Outcome]:
    from eventlog.xds.read import worst

    by_event: dict[str | None, list[StatusReply]] = {}
    for status in statuses:
        by_event.setdefault(status.event_id, []).append(status)
    # One without an event-id speaks of every event.
    of_all = by_event.get(None, [])
    for event_id, positions in document.covers.items():
        of_event = [*by_event.get(event_id, []), *of_all]
        level = worst(status.level for status in of_event)
        if level not in MEANING:
            continue
        # Several statuses of one level may say several things.
        texts = dict.fromkeys(status.text for status in of_event if status.level is level and status.text)
        note = shorten("; ".join(texts), NOTE_CHARACTERS)
        if not note:
            note = f"the receiver answered {level.value!r} without a word"
        letter, reason = MEANING[level]
        for position in positions:
            yield Outcome(position=position, status=letter, reason=reason, note=note)


def _positions(document: Document) -> Iterator[Position]:
    for positions in document.covers.values():
        yield from positions
