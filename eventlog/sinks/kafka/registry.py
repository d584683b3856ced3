"""A schema registry: gives schemas numbers, and numbers schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from eventlog.core.errors import ConfigError, ExpressionError, SinkError, shorten
from eventlog.sinks.kafka.settings import KafkaSettings

if TYPE_CHECKING:
    import urllib3

CONTENT: Final = "application/vnd.schemaregistry.v1+json"
_ADDRESS: Final = (
    "Check output.registry; where the registry is not alone, its address has a path, such as /apis/ccompat/v7."
)


def registry_of(settings: KafkaSettings) -> Registry:
    parts = urlsplit(settings.registry)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        form = "http://… or https://…"
        raise ConfigError(f"output.registry is no address of a schema registry; it is {form}.")
    if "@" in parts.netloc:
        hint = "Write them as output.registry_user and output.registry_password."
        raise ConfigError("output.registry holds a user or a password.", hint=hint)
    return Registry(settings)


class Registry:
    """A registry that answers by HTTP, as Confluent's does."""

    def __init__(self, settings: KafkaSettings) -> None:
        import ssl

        import urllib3

        self._settings = settings
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(total=settings.registry_timeout),
            retries=False,  # the publisher tries again by itself, and says why
            ca_certs=settings.registry_ca_file,
            ssl_minimum_version=ssl.TLSVersion.TLSv1_2,
        )

    def number_of(self, subject: str, schema: str) -> int:
        """Return the schema's number; registers it if needed.

        ExpressionError if the subject's rules refuse it.
        """
        body = msgspec.json.encode({"schema": schema})
        # A slash in a subject does not part the path.
        path = f"/subjects/{quote(subject, safe='')}/versions"
        answer = self._ask("POST", path, body)
        # 409: not compatible with a former version; 422: no schema, or one that its rules forbid.
        if answer.status in (409, 422):
            problem = self._message(answer)
            hint = "change the subject's compatibility or undo the change of the table, then requeue"
            refusal = f"the schema registry refuses the schema of {subject}: {problem}"
            raise ExpressionError(f"{refusal}; {hint}")
        return int(self._content(answer)["id"])

    def schema_of(self, number: int) -> str:
        """Return the schema with this number; raise ExpressionError if there is none."""
        answer = self._ask("GET", f"/schemas/ids/{number}", None)
        if answer.status == 404:
            raise ExpressionError(f"the schema registry has no schema with the number {number}")
        return str(self._content(answer)["schema"])

    def reach(self) -> None:
        """Returns when it lists its subjects; SinkError when it does not answer, or refuses us."""
        self._content(self._ask("GET", "/subjects", None), list[str])

    def _ask(self, method: str, path: str, body: bytes | None) -> urllib3.BaseHTTPResponse:
        import urllib3

        url = self._settings.registry.rstrip("/") + path
        try:
            return self._pool.request(method, url, body=body, headers=self._headers())
        except urllib3.exceptions.HTTPError as error:
            reason = type(getattr(error, "reason", None) or error).__name__
            problem = f"The schema registry {self._settings.registry} does not answer ({reason})."
            raise SinkError(problem, hint="It is tried again.") from None

    def _content(self, answer: urllib3.BaseHTTPResponse, expected: Any = dict[str, Any]) -> Any:
        where = f"The schema registry {self._settings.registry}"
        if answer.status in (401, 403):
            hint = "Check output.registry_user and output.registry_password."
            raise SinkError(f"{where} refuses us ({answer.status}).", hint=hint, may_pass=False)
        # What listens there is no registry, or one whose paths begin otherwise.
        if answer.status in (404, 405):
            raise SinkError(
                f"{where} knows nothing of subjects ({answer.status}).",
                hint=_ADDRESS,
                may_pass=False,
            )
        if answer.status != 200:
            raise SinkError(
                f"{where} answers {answer.status}: {self._message(answer)}.",
                hint="It is tried again.",
            )
        try:
            return msgspec.json.decode(answer.data, type=expected)
        except msgspec.DecodeError:
            raise SinkError(
                f"{where} answers with something that is no JSON.",
                hint=_ADDRESS,
                may_pass=False,
            ) from None

    def _message(self, answer: urllib3.BaseHTTPResponse) -> str:
        """Return an answer's error message, without a full stop."""
        try:
            return shorten(str(msgspec.json.decode(answer.data)["message"]), 300).rstrip(".")
        except (msgspec.DecodeError, KeyError, TypeError):
            return "no reason given"

    def _headers(self) -> dict[str, str]:
        import urllib3

        settings = self._settings
        headers = {"Content-Type": CONTENT, "Accept": f"{CONTENT}, application/json"}
        if settings.registry_authorization:
            headers["Authorization"] = settings.registry_authorization
        elif settings.registry_user is not None:
            login = f"{settings.registry_user}:{settings.registry_password or ''}"
            headers |= urllib3.make_headers(basic_auth=login)
        return headers
