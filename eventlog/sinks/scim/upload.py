"""Microsoft Entra's bulkUpload: users in requests of at most 50, each request accepted first and judged later.

Law: a request that was accepted is success; the provisioning log's word on each user becomes W or E afterwards. Users
are matched by externalId there, so that what is sent again changes nothing. What waits for the word is kept by the log.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from http import HTTPStatus
from importlib import import_module
from threading import Lock
from typing import ClassVar, Final

import msgspec
from msgspec.structs import replace

from eventlog.core.associations import Associations, Awaiting
from eventlog.core.errors import shorten
from eventlog.core.model import Document, Outcome, Position, Reason, Status
from eventlog.core.seams import SinkCapabilities
from eventlog.sinks.http.oauth import OauthSettings
from eventlog.sinks.http.post import UnreadableAnswer
from eventlog.sinks.http.sink import NOTE_CHARACTERS, HttpLane, HttpSink, Reply, again_later
from eventlog.sinks.scim.client import ScimClient
from eventlog.sinks.scim.provisioning import ProvisioningLog, read_date, read_records
from eventlog.sinks.scim.requests import ScimRequest, read_requests
from eventlog.sinks.scim.write import UPLOAD_ROWS

BULK_REQUEST: Final = "urn:ietf:params:scim:api:messages:2.0:BulkRequest"
PACE_REQUESTS, PACE_SECONDS = 40, 5.0
"""So many requests are sent in so much time at most. Of the limits that Microsoft documents it is the lower one, that
of "Troubleshoot issues with inbound provisioning API"; the reference of bulkUpload says 40 in a second."""

Pair = tuple[ScimRequest, Sequence[Position]]
"""A user's request, and the rows behind it."""


class UploadPace:
    """How often all connections together ask."""

    def __init__(self, requests: int = PACE_REQUESTS, seconds: float = PACE_SECONDS) -> None:
        self._lock = Lock()
        self._seconds = seconds
        self._begun: deque[float] = deque(maxlen=requests)

    def wait(self) -> None:
        """Wait until one more request may be sent."""
        with self._lock:
            if len(self._begun) == self._begun.maxlen:
                time.sleep(max(0.0, self._begun[0] + self._seconds - time.monotonic()))
            self._begun.append(time.monotonic())


class EntraLane(HttpLane):
    """Uploads over one connection."""

    _poster: ScimClient

    def share(self, known: Associations, pace: UploadPace, *, is_judged: bool) -> None:
        """Know what the other connections know; `is_judged` says that somebody asks for the later answers."""
        self._known, self._pace, self._is_judged = known, pace, is_judged

    def _send(self, document: Document, plan: str) -> Reply:
        pairs = list(zip(read_requests(document.body), document.covers.values(), strict=True))
        outcomes: list[Outcome] = []
        try:
            for some in cut_pairs(pairs):
                outcomes += self._upload(document.id, some)
        except UnreadableAnswer as error:
            return again_later(document, f"{self._poster.address} gave an answer that cannot be read: {error}")
        return Reply(outcomes=tuple(outcomes))

    def _upload(self, document: str, pairs: Sequence[Pair]) -> Iterator[Outcome]:
        operations = [
            {"method": "POST", "bulkId": f"{document}.{number}", "path": request.path, "data": request.body}
            for number, (request, _) in enumerate(pairs, 1)
        ]
        self._pace.wait()
        answer = self._poster.ask("POST", "", {"schemas": [BULK_REQUEST], "Operations": operations})
        if answer.is_taken:
            if self._is_judged:
                self._await_answers(pairs, read_date(answer.date))
        elif answer.status not in (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE):
            raise self._poster.wrong_address(answer)
        elif len(pairs) > 1:
            # Nobody says which one was wrong.
            for pair in pairs:
                yield from self._upload(document, [pair])
        else:
            [(_, positions)] = pairs
            note = shorten(answer.note, NOTE_CHARACTERS)
            for position in positions:
                yield Outcome(position=position, status=Status.ERROR, reason=Reason.REFUSED, note=note)

    def _await_answers(self, pairs: Sequence[Pair], accepted: str) -> None:
        for request, positions in pairs:
            records = sorted({position[0] for position in positions})
            awaiting = Awaiting(request.unique.values[0], accepted, msgspec.json.encode(records).decode())
            self._known.await_answer(request.object, awaiting, partial(_without, records))


def _without(records: Collection[int], former: Awaiting) -> Awaiting:
    """Take out the rows that were sent again: the word on their last request counts. An upload without rows waits
    for its entry all the same, which would be taken for that of the next one.
    """
    left = [record for record in read_records(former) if record not in records]
    return replace(former, request=msgspec.json.encode(left).decode())


def cut_pairs(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Cut into requests: each has at most 50 operations, and no user twice, for nobody says which would be first."""
    some: list[Pair] = []
    names = set[str]()
    for pair in pairs:
        if len(some) == UPLOAD_ROWS or pair[0].object in names:
            yield some
            some, names = [], set()
        some.append(pair)
        names.add(pair[0].object)
    if some:
        yield some


class EntraSink(EntraLane, HttpSink):
    """Several connections to one provisioning job, of which it is the first itself."""

    lane: ClassVar[type[HttpLane]] = EntraLane

    def __init__(self, settings: OauthSettings, client: ScimClient, late: ProvisioningLog | None) -> None:
        HttpSink.__init__(self, settings, client)
        # A thread must not be the first to import what another one imports.
        import_module("eventlog.sinks.http.tokens")
        self._late = late
        self._associations = Associations() if late is None else late.associations
        pace = UploadPace()
        for lane in self.lanes:
            assert isinstance(lane, EntraLane)  # all are made by `lane`
            lane.share(self._associations, pace, is_judged=late is not None)

    @property
    def capabilities(self) -> SinkCapabilities:
        """What it can do: several connections, and answers that come later."""
        return SinkCapabilities(lanes=self.lanes, associations=self._associations, late=self._late)

    def close(self) -> None:
        """Close the connections, the one to the provisioning log too."""
        super().close()
        if self._late is not None:
            self._late.close()
