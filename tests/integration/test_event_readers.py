"""Webhooks and CloudEvents as receivers read them who know nothing of us: by the libraries of the two standards."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from eventlog.config.settings import from_settings
from eventlog.core.model import Document
from eventlog.core.plugins import SinkOrder
from eventlog.core.seams import encode
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.sinks.webhook.plugin import WEBHOOK
from tests.integration.scripted_server import ScriptedServer, answer
from tests.integration.test_webhook import NEW_SECRET, SECRET, Sent, requests, webhook
from tests.support.events import SHOP, event_format, shop_changes
from tests.support.servers import found


@pytest.fixture
def libraries() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(found("event-readers", "event-readers")))
        yield


class Later(dt.datetime):
    """The clock of a receiver to whom a request comes six minutes after it was sent."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Later:
        return cls.fromtimestamp(time.time() + 360, tz)


def sent(batch: int = 1, **settings: Any) -> list[Sent]:
    """The requests with a history of a table with every type."""
    with ScriptedServer([answer()]) as server:
        output = webhook(server.url, format="cloudevents", cloudevents={"batch_size": batch, **settings})
        config = from_settings({"output": [output]}, {}, origin="a test").output[0]
        form = event_format("cloudevents", batch=batch, array=True)
        sink = WEBHOOK.build(SinkOrder(output=config, format=form))
        for number, made in enumerate(encode(form, shop_changes(), SHOP)):
            if isinstance(made, Document):
                assert not sink.commit(f"p{number}", [made])
        sink.close()
        return requests(server)


def test_signatures_are_accepted_and_a_forged_or_old_one_is_refused(
    libraries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    library: Any = import_module("standardwebhooks.webhooks")
    receiver, [request, *_] = library.Webhook(SECRET), sent()
    headers = {name.lower(): str(value) for name, value in request.headers.items()}
    assert receiver.verify(request.body, headers) == json.loads(request.body)
    forged = [
        (receiver, request.body.replace(b"goods", b"roads"), headers),
        (receiver, request.body, {**headers, "webhook-id": "another"}),
        (library.Webhook(NEW_SECRET), request.body, headers),
    ]
    for who, body, said in forged:
        with pytest.raises(library.WebhookVerificationError):
            who.verify(body, said)
    with monkeypatch.context() as patch:  # the very same request, replayed
        patch.setattr(library, "datetime", Later)
        with pytest.raises(library.WebhookVerificationError, match="too old"):
            receiver.verify(request.body, headers)


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_the_sdk_reads_every_event_over_http(libraries: None, mode: str) -> None:
    http: Any = import_module("cloudevents.core.bindings.http")
    events = []
    for request in sent(mode=mode):
        headers = {name.lower(): str(value) for name, value in request.headers.items()}
        events.append(http.from_http_event(http.HTTPMessage(headers=headers, body=request.body)))
    assert [event.get_type().rpartition(".")[2] for event in events] == [
        *("insert", "update", "refresh", "delete", "truncate")
    ]
    assert len({event.get_id() for event in events}) == 5
    assert events[0].get_data()["after"]["note"] == "Zoë “<&>”\n\U0001f600"
    assert events[0].get_time() is not None


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_the_sdk_reads_every_event_of_kafka(libraries: None, mode: str) -> None:
    kafka: Any = import_module("cloudevents.core.bindings.kafka")
    form = event_format("cloudevents", topics=True, mode=mode)
    messages = [
        message
        for made in encode(form, shop_changes(), SHOP)
        if isinstance(made, MessagesDocument)
        for message in made.messages
    ]
    events = []
    for message in messages:
        headers = dict(message.headers)
        events.append(kafka.from_kafka_event(kafka.KafkaMessage(headers=headers, key=message.key, value=message.value)))
    assert [event.get_data()["op"] for event in events] == ["insert", "update", "refresh", "delete", "truncate"]
