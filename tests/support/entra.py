"""An emulator of Microsoft Entra's API-driven inbound provisioning, after its public documentation: nothing of Microsoft's.

It has OAuth 2 tokens by client credentials, bulkUpload with its limits and refusals, users that are processed later, and
the provisioning log with filters and pages.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode

from tests.support.wsgi import serve_application

CLIENT, SECRET = "entra-client", "secret-of-tests"
JOB = "API2AAD.0123456789abcdef0123456789abcdef.00000000-0000-0000-0000-000000000000"
BULK = "urn:ietf:params:scim:api:messages:2.0:BulkRequest"
SCHEMAS = {"urn:ietf:params:scim:schemas:core:2.0:User", "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"}
Answer = tuple[int, dict[str, str], Any]


class Entra:
    """One provisioning job, and the directory that it writes to."""

    def __init__(self) -> None:
        self.root = ""
        self.users: dict[str, dict[str, Any]] = {}
        """What was provisioned, by externalId."""
        self.created: list[str] = []
        self.uploads: list[list[Mapping[str, Any]]] = []
        """The operations of each request that was accepted."""
        self.log: list[dict[str, Any]] = []
        self.in_scope: Callable[[Mapping[str, Any]], bool] = lambda _: True
        self.may_read_log = True
        self.meddle: Callable[[str, str], Answer | None] = lambda _method, _path: None
        self.together = False
        """Whether uploads of one user in a cycle are taken together, with one entry in the log."""
        self.calls: list[float] = []
        """When bulkUpload was called."""
        self._staged: deque[Mapping[str, Any]] = deque()
        self._token = 0
        self._lock = Lock()

    @property
    def url(self) -> str:
        """The provisioning API endpoint."""
        return f"{self.root}/v1.0/servicePrincipals/1234/synchronization/jobs/{JOB}/bulkUpload"

    @property
    def token_url(self) -> str:
        """Where tokens are fetched."""
        return f"{self.root}/tenant/oauth2/v2.0/token"

    def process(self, most: int | None = None) -> None:
        """Do a cycle: provision what was accepted, `most` operations of it, and write the log."""
        with self._lock:
            staged = [self._staged.popleft() for _ in [*self._staged][:most]]
        if self.together:
            merged: dict[str, dict[str, Any]] = {}
            for operation in staged:
                external = str(operation["data"]["externalId"])
                merged[external] = merged.get(external, {}) | operation["data"]
            staged = [{"data": data} for data in merged.values()]
        for operation in staged:
            self._provision(operation["data"])

    def expire(self) -> None:
        """Let every token be over."""
        self._token += 1

    def _provision(self, data: Mapping[str, Any]) -> None:
        external = str(data["externalId"])
        former = self.users.get(external)
        after = {**(former or {}), **data}
        if not self.in_scope(data):
            self._note(
                external, "skipped", "other", "The user is not in scope", {"SkipReason": "NotEffectivelyEntitled"}
            )
        elif former == after:
            self._note(external, "skipped", "update", "Nothing had to change", {"SkipReason": "RedundantExport"})
        elif "@" not in str(after.get("userName")):
            words = {"errorCode": "AzureActiveDirectoryInvalidUserPrincipalName", "reason": "The name has no domain."}
            self._note(external, "failure", "update" if former else "create", "Failed to export", {}, words)
        else:
            if former is None:
                self.created.append(external)
            self.users[external] = after
            self._note(external, "success", "update" if former else "create", "Exported", {})

    def _note(
        self,
        external: str,
        status: str,
        action: str,
        description: str,
        details: Mapping[str, str],
        error: Mapping[str, str] | None = None,
    ) -> None:
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
        step = {"name": "EntryExport", "status": status, "description": description, "details": details}
        self.log.append(
            {
                "id": str(len(self.log)),
                "activityDateTime": now,
                "jobId": JOB,
                "provisioningAction": action,
                "provisioningStatusInfo": {"status": status, "errorInformation": error},
                "provisioningSteps": [step],
                "sourceIdentity": {"id": external, "identityType": "User", "displayName": ""},
                "targetIdentity": {"id": "", "identityType": "User", "displayName": ""},
            }
        )

    # --- HTTP ---------------------------------------------------------------------------------------

    def answer(self, environ: Mapping[str, Any]) -> Answer:
        """Answer a request."""
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        meddled = self.meddle(method, path)
        if meddled is not None:
            return meddled
        if path.endswith("/token"):
            return self._give_token(body)
        if environ.get("HTTP_AUTHORIZATION") != f"Bearer token-{self._token}":
            return _refuse(401, "InvalidAuthenticationToken", "Access token has expired or is not yet valid.")
        if method == "POST" and path.endswith(f"/jobs/{JOB}/bulkUpload"):
            return self._upload(environ.get("CONTENT_TYPE", ""), body)
        if method == "GET" and path == "/v1.0/auditLogs/provisioning":
            return self._read_log(dict(parse_qsl(environ.get("QUERY_STRING", ""))))
        return _refuse(404, "ResourceNotFound", "There is nothing.")

    def _give_token(self, body: bytes) -> Answer:
        form = {key: value for key, [value] in parse_qs(body.decode()).items()}
        if form.get("grant_type") != "client_credentials" or not form.get("scope"):
            return 400, {}, {"error": "invalid_request"}
        return 200, {}, {"access_token": f"token-{self._token}", "token_type": "Bearer", "expires_in": 3599}

    def _upload(self, media: str, body: bytes) -> Answer:
        now = time.monotonic()
        with self._lock:
            self.calls.append(now)
            recent = sum(call > now - 5 for call in self.calls)
        if recent > 40:
            code, headers, said = _refuse(429, "TooManyRequests", "40 calls in 5 seconds")
            return code, headers | {"Retry-After": "1"}, said
        if media != "application/scim+json":
            return _refuse(400, "InvalidDataFormat", "Invalid Data Format")
        request = json.loads(body)
        operations = request.get("Operations") or []
        ids = {operation.get("bulkId") for operation in operations}
        fault = request.get("schemas") != [BULK] or not 0 < len(operations) <= 50 or len(ids) != len(operations)
        for operation in operations:
            data = operation.get("data") or {}
            fault = fault or (operation.get("method"), operation.get("path")) != ("POST", "/Users")
            fault = fault or not SCHEMAS.issubset(data.get("schemas") or ()) or not data.get("externalId")
            fault = fault or "<" in str(data.get("displayName"))  # what this emulator calls unparsable
        if fault:
            return _refuse(400, "InvalidDataFormat", "Invalid Data Format")
        with self._lock:
            self.uploads.append(operations)
            self._staged.extend(operations)
        return 202, {"Location": f"{self.root}/v1.0/auditLogs/provisioning/?$filter=jobid%20eq%20'{JOB}'"}, None

    def _read_log(self, query: dict[str, str]) -> Answer:
        if not self.may_read_log:
            return _refuse(403, "Authorization_RequestDenied", "AuditLog.Read.All is missing.")
        found = self.log
        if filters := query.get("$filter"):
            whole = re.fullmatch(r"jobid eq '([^']+)' and activityDateTime gt (\S+)", filters)
            assert whole is not None, filters
            found = [one for one in found if one["jobId"] == whole[1] and one["activityDateTime"] > whole[2]]
        skip, top = int(query.get("$skiptoken", "0")), min(int(query.get("$top", "100")), 3)
        answer: dict[str, Any] = {"value": found[skip : skip + top]}
        if skip + top < len(found):
            more = query | {"$skiptoken": str(skip + top)}
            # Only the query of it counts: a client that follows it anywhere gives its token away.
            answer["@odata.nextLink"] = f"http://elsewhere.invalid/v1.0/auditLogs/provisioning?{urlencode(more)}"
        return 200, {}, answer


def _refuse(status: int, code: str, message: str) -> Answer:
    return status, {}, {"error": {"code": code, "message": message}}


@contextmanager
def entra() -> Iterator[Entra]:
    """The emulator, in a thread of this process."""
    emulator = Entra()

    def serve(environ: Any, start: Any) -> Any:
        status, headers, content = emulator.answer(environ)
        body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
        more = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Date": formatdate(usegmt=True)}
        start(f"{status} Whatever", [*(headers | more).items()])
        return [body]

    with serve_application(serve) as root:
        emulator.root = root
        yield emulator
