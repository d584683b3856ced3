"""The sink `hook`: each document is POSTed, with its id as idempotency key and a signature over its body."""

import hmac
from collections.abc import Iterator, Sequence
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from eventlog.plugins import (
    ConfigError,
    Document,
    Outcome,
    OutputKeys,
    Reason,
    Resolved,
    SinkCapabilities,
    SinkError,
    SinkPlugin,
    Status,
    Tenure,
)


class Webhook(OutputKeys, frozen=True, kw_only=True):
    """The keys of `[[output]]` with `sink = "hook"`."""

    url: str
    secret: str

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError("output.url is no address of http:// or https://.")


class WebhookSink:
    capabilities = SinkCapabilities()

    def __init__(self, output: Webhook) -> None:
        self._output = output
        self._last = ""

    def open(self, tenure: Tenure | None) -> None:
        """A receiver does not know whose it is."""

    def last(self) -> str:
        return self._last

    def resolve(self, plan: str) -> Resolved:
        return Resolved()

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        """Nothing is sent before its time."""

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        return [outcome for document in documents for outcome in self._sent(document)]

    def close(self) -> None:
        """Each request has a connection of its own."""

    def _sent(self, document: Document) -> Iterator[Outcome]:
        signature = hmac.digest(self._output.secret.encode(), document.body, "sha256").hex()
        request = Request(self._output.url, document.body, {"Idempotency-Key": document.id, "X-Signature": signature})
        try:
            urlopen(request, timeout=10).close()
        except HTTPError as error:
            error.close()
            if error.code not in (400, 413, 422):  # what else it answers may pass
                raise SinkError(f"The webhook answers {error.code}.", hint="It is tried again.") from error
            for position in (place for places in document.covers.values() for place in places):
                yield Outcome(position=position, status=Status.ERROR, reason=Reason.REFUSED, note=f"HTTP {error.code}")
        except URLError as error:
            raise SinkError(f"The webhook cannot be reached: {error.reason}.", hint="It is tried again.") from error
        self._last = max(self._last, document.id)


WEBHOOK = SinkPlugin(
    settings=Webhook,
    build=lambda order: WebhookSink(order.output),
    place=lambda output: f"webhook {output.url}",
    answers=True,
)
