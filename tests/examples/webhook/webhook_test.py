"""What every sink must do, asked of the webhook, and what it does with the answers of a receiver."""

import hmac
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import ClassVar

import pytest
from eventlog_webhook import Webhook, WebhookSink

from eventlog.plugins import SinkError
from eventlog.testing import SinkSuite, SinkTarget, document, tenure


class Receiver(BaseHTTPRequestHandler):
    taken: ClassVar[list[str]] = []
    answer = 204

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        signed = hmac.digest(b"s", body, "sha256").hex() == self.headers["X-Signature"]
        if self.answer == 204 and signed:
            self.taken.append(self.headers["Idempotency-Key"])
        self.send_response(self.answer if signed else 401)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quietly."""


@pytest.fixture
def url() -> Iterator[str]:
    Receiver.taken, Receiver.answer = [], 204
    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class TestWebhook(SinkSuite):
    @pytest.fixture
    def target(self, url: str) -> SinkTarget:
        return SinkTarget(make=lambda: WebhookSink(Webhook(url=url, secret="s")), ids=lambda: list(Receiver.taken))


def test_answers_become_outcomes(url: str) -> None:
    sink = WebhookSink(Webhook(url=url, secret="s"))
    sink.open(tenure())
    Receiver.answer = 422
    [outcome] = sink.commit("a", [document(1)])
    assert (outcome.position, str(outcome.status), outcome.note) == ((1,), "E", "HTTP 422")
    Receiver.answer = 503
    with pytest.raises(SinkError, match="answers 503"):
        sink.commit("b", [document(2)])
