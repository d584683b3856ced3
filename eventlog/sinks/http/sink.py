"""The HTTP sink: each document is POSTed, and the receiver's answer says what becomes of its events.

Law: a document is sent until it was answered. What nobody knows the fate of (a reply cut short, one that cannot be
read) is sent again under the same plan and id, by which the receiver recognises it; nothing that comes after overtakes
it. The epoch of the publisher goes with each document: a receiver that keeps the highest can refuse one that was replaced.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus
from importlib import import_module
from typing import Final

from eventlog.core.errors import OccupiedError, SinkError, XmlError, shortened
from eventlog.core.model import Document, Outcome
from eventlog.core.seams import SinkCapabilities, Tenure
from eventlog.core.secrets import shown
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.http.post import HttpAnswer, Poster
from eventlog.sinks.http.replies import Reply, again_later, not_sent, read_reply
from eventlog.sinks.http.wire import UnreadableAnswer

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


class HttpLane:
    """Sends each document to one address, one after the other, over one connection that is kept."""

    def __init__(self, poster: Poster) -> None:
        self._poster = poster
        self.answered = ""

    def serve(self, tenure: Tenure | None) -> None:
        """Says from now on for which log, and in which epoch, it sends."""
        self._poster.tenure = tenure

    def write(self, documents: Sequence[Document], plan: str = "") -> Sequence[Outcome]:
        """Sends them in order until one is not taken for good. The rest waits, and what was answered stays answered."""
        outcomes: list[Outcome] = []
        for number, document in enumerate(documents):
            try:
                reply = self._send(document, plan)
            except SinkError as error:
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
        """Closes the connection."""
        self._poster.close()

    def break_off(self) -> None:
        """Ends from another thread what is on its way."""
        self._poster.break_off()

    def _send(self, document: Document, plan: str) -> Reply:
        try:
            answer = self._poster.post(document, plan)
            if answer.overtaken:
                raise OccupiedError(
                    f"{self._poster.place} gets its documents from a later publisher.",
                    hint="This one sends nothing more.",
                )
            if not answer.taken:
                raise self._refused(answer)
            reply = read_reply(document, answer.body)
        except (UnreadableAnswer, XmlError) as error:
            why = f"{self._poster.place} gave an answer that cannot be read: {error}"
            _log.warning("%s The document %s is sent again later.", why, document.id)
            return again_later(document, why)
        if reply.unknown:
            ids = shown(shortened(", ".join(reply.unknown[:5]), 200))
            _log.warning(
                "%s answered for events that document %s does not have: %s.", self._poster.place, document.id, ids
            )
        return reply

    def _refused(self, answer: HttpAnswer) -> SinkError:
        """What an answer outside 2xx means."""
        may_pass = answer.status in MAY_PASS or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        hint = "It is tried again." if may_pass else HINTS.get(answer.status)
        if answer.location:
            hint = f"It points to {answer.location}; write the address that takes documents into the output's `url`."
        return SinkError(f"{self._poster.place} answered {answer.said}.", hint=hint, may_pass=may_pass)


class HttpSink(HttpLane):
    """Several connections to one address, of which it is the first itself: who hands over one by one needs no other."""

    def __init__(self, settings: HttpSettings) -> None:
        poster = Poster(settings)
        super().__init__(poster)
        _prepare_for_threads()  # also where it has one connection: each output that lags has a thread
        others = [HttpLane(poster.another()) for _ in range(settings.connections - 1)]
        self.lanes: tuple[HttpLane, ...] = (self, *others)

    @property
    def capabilities(self) -> SinkCapabilities:
        """What it can do beyond what all can."""
        return SinkCapabilities(lanes=self.lanes)

    def open(self, tenure: Tenure | None) -> None:
        """Says from now on who sends; nothing is asked of the receiver."""
        for lane in self.lanes:
            lane.serve(tenure)

    def last(self) -> str:
        """The id of the last document that was answered in this process; only the receiver knows what was before."""
        return max(lane.answered for lane in self.lanes)

    def close(self) -> None:
        """Closes all connections."""
        super().close()
        for lane in self.lanes[1:]:
            lane.close()


def _prepare_for_threads() -> None:
    """Imports what sending needs: modules that import each other fail when several threads are the first to ask for them."""
    for name in ("urllib3.connection", "urllib3.exceptions", "urllib3.response", "eventlog.xds.read"):
        import_module(name)
