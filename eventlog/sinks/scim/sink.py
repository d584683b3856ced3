"""The sink `scim`: each document is one request for one object, over several connections.

Law: a request is carried until it was answered. What the receiver refuses ends the events as errors, with its
words; 429, 5xx and silence wait. A 500 in SCIM's words is of one object, which comes again as an attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from threading import Lock
from typing import ClassVar

from eventlog.core.errors import shorten
from eventlog.core.model import Document, Outcome, Position, Reason, Status
from eventlog.core.seams import SinkCapabilities, Tenure
from eventlog.sinks.http.oauth import OauthSettings
from eventlog.sinks.http.post import UnreadableAnswer
from eventlog.sinks.http.sink import NOTE_CHARACTERS, HttpLane, HttpSink, Reply, again_later
from eventlog.sinks.scim.carry import ScimCarrier
from eventlog.sinks.scim.client import FailedError, ScimClient
from eventlog.sinks.scim.receiver import ScimReceiver
from eventlog.sinks.scim.requests import ScimRequest, list_references, read_requests
from eventlog.sinks.scim.server import RefusedError


class Unsent:
    """The documents that nobody can have sent yet: those of plans that this process has made."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._keys: set[tuple[str, str]] = set()

    def clear(self) -> None:
        """Forget them all: somebody else may have sent them."""
        with self._lock:
            self._keys.clear()

    def add(self, plan: str, documents: Sequence[Document]) -> None:
        """Know that these are new."""
        with self._lock:
            self._keys.update((plan, document.id) for document in documents)

    def take(self, plan: str, document: Document) -> bool:
        """Begin to send one; whether it is the first time."""
        with self._lock:
            is_new = (plan, document.id) in self._keys
            self._keys.discard((plan, document.id))
            return is_new


class ScimLane(HttpLane):
    """Carries requests over one connection."""

    _poster: ScimClient

    def share(self, receiver: ScimReceiver, unsent: Unsent) -> None:
        """Know the receiver as the other connections do."""
        self._carrier = ScimCarrier(self._poster, receiver)
        self._unsent = unsent

    def _send(self, document: Document, plan: str) -> Reply:
        is_new = self._unsent.take(plan, document)
        outcomes: list[Outcome] = []
        try:
            for request, positions in zip(read_requests(document.body), document.covers.values(), strict=True):
                if outcomes and outcomes[-1].status is Status.NEW:
                    outcomes += _outcomes(
                        positions, Status.NEW, Reason.HELD, "what comes before it is still to be taken"
                    )
                else:
                    outcomes += self._carry(request, positions, is_new=is_new)
        except UnreadableAnswer as error:
            return again_later(document, f"{self._poster.address} gave an answer that cannot be read: {error}")
        return Reply(outcomes=tuple(outcomes))

    def _carry(self, request: ScimRequest, positions: Sequence[Position], *, is_new: bool) -> list[Outcome]:
        try:
            notes = self._carrier.carry(request, is_new=is_new)
        except FailedError as error:
            return _outcomes(positions, Status.NEW, Reason.RETRY, error.note)
        except RefusedError as error:
            return _outcomes(positions, Status.ERROR, Reason.REFUSED, error.note)
        return _outcomes(positions, Status.WARNING, Reason.PUBLISHED, "; ".join(notes)) if notes else []


def _outcomes(positions: Sequence[Position], status: Status, reason: Reason, note: str) -> list[Outcome]:
    short = shorten(note, NOTE_CHARACTERS)
    return [Outcome(position=position, status=status, reason=reason, note=short) for position in positions]


class ScimSink(ScimLane, HttpSink):
    """Several connections to one receiver, of which it is the first itself."""

    lane: ClassVar[type[HttpLane]] = ScimLane

    def __init__(self, settings: OauthSettings, client: ScimClient, receiver: ScimReceiver) -> None:
        self._receiver = receiver
        HttpSink.__init__(self, settings, client)
        # A thread must not be the first to import what another one imports.
        import_module("eventlog.sinks.http.tokens")
        unsent = Unsent()
        for lane in self.lanes:
            assert isinstance(lane, ScimLane)  # all are made by `lane`
            lane.share(receiver, unsent)

    @property
    def capabilities(self) -> SinkCapabilities:
        """Declare several connections, and the receiver's ids as associations."""
        return SinkCapabilities(lanes=self.lanes, announce=self._announce, associations=self._receiver.associations)

    def open(self, tenure: Tenure | None) -> None:
        """Take over from another publisher, which may have sent whatever was planned."""
        super().open(tenure)
        self._unsent.clear()
        self._receiver.take_over()

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        """Know that these are new."""
        self._unsent.add(plan, documents)

    def _announce(self, documents: Sequence[Document]) -> None:
        """Know which objects come and which end, and read at once what is known of them."""
        requests = [request for document in documents for request in read_requests(document.body)]
        self._receiver.announce(requests)
        names: dict[str, None] = {}
        for request in requests:
            names |= dict.fromkeys([request.object, *list_references(request.body)])
        self._receiver.associations.read([*names])
