"""The provisioning log of Microsoft Entra: what became of users that bulkUpload has accepted, minutes later.

An entry names a user by externalId. Of a user's uploads the first entry since the first of them is the first one's;
where Entra has taken several together, the last entry is that of all left, once it is a quarter of an hour old.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import msgspec

from eventlog.core.associations import Associations, Awaiting
from eventlog.core.errors import ConfigError, shorten
from eventlog.core.model import Status
from eventlog.core.seams import LateAnswer
from eventlog.core.times import moment
from eventlog.sinks.http.oauth import OauthSettings
from eventlog.sinks.http.sink import NOTE_CHARACTERS
from eventlog.sinks.scim.client import ScimClient

PAGE_ROWS: Final = 500
"""Entries that are asked for at once."""

LATEST_SECONDS: Final = 900.0
"""Microsoft documents five to ten minutes until the log has an entry; after so long no other one comes."""


class ProvisioningEntry(NamedTuple):
    """What the log says of a user."""

    time: dt.datetime
    status: Status
    note: str


def split_endpoint(url: str) -> tuple[str, str]:
    """Split the address of a job's bulkUpload: the address of the provisioning log, and the job."""
    root, found, rest = url.partition("/servicePrincipals/")
    parts = rest.split("/")
    if not found or len(parts) != 5 or parts[1:3] != ["synchronization", "jobs"] or parts[4] != "bulkUpload":
        raise ConfigError(
            'output.url is no provisioning API endpoint; with mode = "entra" it is'
            " https://graph.microsoft.com/v1.0/servicePrincipals/ID/synchronization/jobs/JOB/bulkUpload."
        )
    return f"{root}/auditLogs/provisioning", parts[3]


def read_date(text: str) -> str:
    """Read a header `Date` as ISO 8601 in UTC; the time of now where it says none."""
    try:
        said = parsedate_to_datetime(text).astimezone(dt.UTC)
    except ValueError:
        said = dt.datetime.now(dt.UTC)
    return said.strftime("%Y-%m-%dT%H:%M:%SZ")


class ProvisioningLog:
    """Asks the provisioning log of one job. What has no entry after `patience` seconds ends as a warning."""

    def __init__(self, settings: OauthSettings, client: ScimClient, *, seconds: float, patience: float) -> None:
        address, self._job = split_endpoint(settings.url)
        # Another address, and the same login.
        login = {name: getattr(settings, name) for name in OauthSettings.__struct_fields__}
        self._client = client.at(OauthSettings(**login | {"url": address}))
        self.associations = Associations()
        self._seconds = seconds
        self._patience = patience

    @property
    def seconds(self) -> float:
        """Return how long to wait until it is asked again."""
        return self._seconds

    def read(self) -> Sequence[LateAnswer]:
        """Read what the log says by now of what waits."""
        awaited = self.associations.list_awaited()
        if not awaited:
            return []
        begin = min(awaiting.place for _, several in awaited for awaiting in several)
        wanted = {awaiting.object for _, several in awaited for awaiting in several}
        entries: dict[str, list[ProvisioningEntry]] = {}
        for name, entry in self._entries(begin):
            if name in wanted:
                entries.setdefault(name, []).append(entry)
        answers: list[LateAnswer] = []
        for name, several in awaited:
            answers += self._match(name, several, entries)
        return answers

    def ask_once(self) -> None:
        """Ask for one entry, to see whether it may be read."""
        self._ask({"$top": "1"})

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _match(
        self, name: str, several: Sequence[Awaiting], entries: Mapping[str, Sequence[ProvisioningEntry]]
    ) -> Iterator[LateAnswer]:
        """Match a user's uploads with the entries since the first one; none where others are still to come."""
        # Stable: those of one second stand in the order in which they were sent.
        uploads = sorted(several, key=lambda awaiting: awaiting.place)
        first, now = _moment(uploads[0].place), dt.datetime.fromtimestamp(time.time(), dt.UTC)
        found = sorted(entry for entry in entries.get(uploads[0].object, ()) if entry.time >= first)
        is_last = bool(found) and (now - found[-1].time).total_seconds() >= LATEST_SECONDS
        if len(found) >= len(uploads) or is_last:
            ends = [*found[: len(uploads) - 1], *[found[-1]] * len(uploads)]
            for upload, entry in zip(uploads, ends, strict=False):
                yield _answer(name, upload, entry.status, entry.note)
            return
        for upload in uploads:
            if (now - _moment(upload.place)).total_seconds() >= self._patience:
                note = f"Entra accepted it at {upload.place}, and its provisioning log says nothing of it since"
                yield _answer(name, upload, Status.WARNING, note)

    def _entries(self, begin: str) -> Iterator[tuple[str, ProvisioningEntry]]:
        since = (_moment(begin) - dt.timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        query = {"$filter": f"jobid eq '{self._job}' and activityDateTime gt {since}", "$top": str(PAGE_ROWS)}
        while query:
            content = self._ask(query)
            for said in content.get("value") or ():
                when = moment(str(said.get("activityDateTime")))
                name = str((said.get("sourceIdentity") or {}).get("id") or "")
                # The log has other jobs too, should a filter be passed over.
                if when is not None and name and said.get("jobId") == self._job:
                    yield name, ProvisioningEntry(when.replace(tzinfo=dt.UTC), *_judge(said))
            # The address that it names is not followed: only its query is asked.
            query = dict(parse_qsl(urlsplit(str(content.get("@odata.nextLink") or "")).query))

    def _ask(self, query: Mapping[str, str]) -> dict[str, Any]:
        answer = self._client.ask("GET", "", query=dict(query))
        if not answer.is_taken:
            raise self._client.wrong_address(answer)
        return answer.content


def _answer(name: str, upload: Awaiting, status: Status, note: str) -> LateAnswer:
    return LateAnswer(object=name, awaiting=upload, records=read_records(upload), status=status, note=note)


def read_records(upload: Awaiting) -> tuple[int, ...]:
    """Read which rows of the log wait for the word on an upload."""
    return msgspec.json.decode(upload.request, type=tuple[int, ...])


def _judge(said: Mapping[str, Any]) -> tuple[Status, str]:
    """Judge an entry: what it says becomes of the user's rows."""
    info = said.get("provisioningStatusInfo") or {}
    status = str(info.get("status")).lower()
    steps = [step for step in said.get("provisioningSteps") or () if str(step.get("status")).lower() == status]
    if status == "success":
        return Status.SUCCESS, ""
    if status == "skipped" and any("RedundantExport" in str(step.get("details")) for step in steps):
        return Status.SUCCESS, ""  # it has all that already
    error = info.get("errorInformation") or {}
    words = [error.get("errorCode"), error.get("reason"), error.get("additionalDetails")]
    words += [step.get("description") for step in steps if not any(words)]
    text = " ".join(": ".join(str(word) for word in words if word).split())
    note = shorten(f"Entra's provisioning log says {status}" + (f": {text}" if text else ""), NOTE_CHARACTERS)
    return (Status.ERROR if status == "failure" else Status.WARNING), note


def _moment(text: str) -> dt.datetime:
    found = moment(text)
    assert found is not None  # read_date wrote it
    return found.replace(tzinfo=dt.UTC)
