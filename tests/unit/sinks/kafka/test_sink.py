"""Kafka's settings and errors in words: what is refused, what clients get, and whether waiting helps."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from eventlog.core.errors import ConfigError, SinkError
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat, WrittenMessage
from eventlog.sinks.kafka.errors import in_words, louder
from eventlog.sinks.kafka.frames import Frames
from eventlog.sinks.kafka.marks import KnownStructure, Taken, TopicState, mark_messages
from eventlog.sinks.kafka.settings import KafkaSettings, client_options, producer_options, transaction_seconds
from eventlog.sinks.kafka.topics import Topics
from eventlog.sinks.ownership import Owner
from tests.support.messages import CATALOG, inserted


@pytest.mark.parametrize(
    "settings, problem",
    [
        ({"servers": " "}, "output.servers is empty"),
        ({"transactional_id": ""}, "output.transactional_id is empty"),
        ({"timeout": 0}, "output.timeout is 0"),
        ({"partitions": 0}, "output.partitions is 0"),
        ({"sasl": "plain"}, "belong together"),
        ({"user": "me"}, "belong together"),
        ({"ca_file": "ca.pem"}, "need output.tls"),
        (
            {"registry": "http://r:1/", "registry_ca_file": "ca.pem"},
            "output.registry begins with http://. Write https://",
        ),
        ({"tls": True, "client_key": "key.pem"}, "needs output.client_certificate"),
        ({"options": {"acks": 1}}, "output.options sets acks"),
        ({"options": {"transaction.timeout.ms": "soon"}}, "must be a whole number of milliseconds"),
    ],
)
def test_settings_that_connect_to_nothing_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        KafkaSettings(**{"servers": "broker:9092", **settings})
    assert problem in str(caught.value)


@pytest.mark.parametrize("options, seconds", [({}, 30.0), ({"transaction.timeout.ms": "90000"}, 90.0)])
def test_a_transaction_may_be_open_for_as_long_as_the_operator_says(options: dict[str, Any], seconds: float) -> None:
    assert transaction_seconds(KafkaSettings(servers="b:1", options=options)) == seconds


def test_clients_get_who_we_are_and_whom_we_trust(tmp_path: Path) -> None:
    authority, certificate = tmp_path / "ca.pem", tmp_path / "me.pem"
    authority.touch()
    certificate.touch()
    settings = KafkaSettings(
        servers="b:1",
        tls=True,
        verify=False,
        ca_file=str(authority),
        client_certificate=str(certificate),
        sasl="scram-sha-512",
        user="me",
        password="pa55",
    )
    options = client_options(settings)
    assert options["security.protocol"] == "sasl_ssl"
    assert (options["sasl.mechanism"], options["sasl.password"]) == ("SCRAM-SHA-512", "pa55")
    assert (options["ssl.ca.location"], options["ssl.key.location"]) == (str(authority), str(certificate))
    assert options["enable.ssl.certificate.verification"] is False
    authority.unlink()
    with pytest.raises(ConfigError, match="there is no such file"):
        client_options(settings)


def test_nothing_that_is_set_takes_away_that_messages_are_there_once() -> None:
    options = producer_options(KafkaSettings(servers="b:1", compression="zstd", options={"batch.size": 1000}))
    assert (options["enable.idempotence"], options["transactional.id"]) == (True, "eventlog")
    assert (options["batch.size"], options["compression.type"]) == (1000, "zstd")
    assert client_options(KafkaSettings(servers="b:1"))["security.protocol"] == "plaintext"


@pytest.mark.parametrize(
    "code, said, may_pass",
    [
        (KafkaError._ALL_BROKERS_DOWN, "does not answer", True),
        (KafkaError._FENCED, "has taken over output.transactional_id", True),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "right to write to the topic", False),
        (KafkaError.INVALID_REQUIRED_ACKS, "does not take messages", True),
    ],
)
def test_errors_say_whether_waiting_helps(code: int, said: str, may_pass: bool) -> None:
    error = in_words(KafkaError(code), "broker:9092")
    assert "broker:9092" in str(error)
    assert said in str(error)
    assert error.may_pass is may_pass


ALERT = "Receive failed: error:0A000412:SSL routines::ssl/tls alert bad certificate: SSL alert number 42"
SHAKEN = "Disconnected: SSL connection closed by peer (after 0ms in state SSL_HANDSHAKE)"
REFUSED = "Connect to ipv4#127.0.0.1:9 failed: Connection refused"


@pytest.mark.parametrize(
    "earlier, said, may_pass",
    [
        (KafkaError(KafkaError._AUTHENTICATION), "Check output.sasl", False),
        (KafkaError(KafkaError._SSL), "Check output.tls", False),
        (KafkaError(KafkaError._TRANSPORT, ALERT), "Check output.client_certificate", False),
        (KafkaError(KafkaError._TRANSPORT, REFUSED), "does not answer: Connect to", True),
        (KafkaError(KafkaError._ALL_BROKERS_DOWN), "check output.tls and output.sasl", True),
        (KafkaError(KafkaError._TRANSPORT, SHAKEN), "check output.tls and output.sasl", True),
        (KafkaError(KafkaError._FENCED), "has taken over output.transactional_id", True),
        (None, "does not answer", True),
    ],
)
def test_what_was_said_before_explains_a_silence(earlier: KafkaError | None, said: str, may_pass: bool) -> None:
    error = in_words(KafkaError(KafkaError._TIMED_OUT), "b:1", earlier)
    assert said in str(error)
    assert error.may_pass is may_pass


def test_the_louder_of_two_is_kept_and_of_equal_ones_the_later() -> None:
    refused, broken = KafkaError(KafkaError._AUTHENTICATION), KafkaError(KafkaError._TRANSPORT, REFUSED)
    nobody, later = KafkaError(KafkaError._ALL_BROKERS_DOWN), KafkaError(KafkaError._TRANSPORT, ALERT)
    for former, one, kept in (
        (None, nobody, nobody),
        (nobody, broken, broken),
        (broken, nobody, broken),
        (refused, broken, refused),
        (broken, refused, refused),
        (refused, later, later),
    ):
        assert louder(former, one) is kept


def test_marks_are_messages_by_output_and_table() -> None:
    standing = TopicState(last="7", owner=Owner(log="l", name="event log", epoch=3), taken=Taken(plan="a", part=("7",)))
    ours = KafkaSettings(servers="broker:9092", transactional_id="out")
    assert dict(mark_messages(ours, standing, {"shop.orders": KnownStructure("AB", 2)})) == {
        b"out": b'{"last":"7","owner":{"log":"l","name":"event log","epoch":3},"taken":{"plan":"a","part":["7"]}}',
        b"out/shop.orders": b'{"schema_id":"AB","version":2}',
    }


class Listing:
    """Brokers that say one thing after the other of a topic: an error, or none and a partition."""

    def __init__(self, *errors: int | None) -> None:
        self._errors = list(errors)

    def list_topics(self, topic: str, timeout: float) -> Any:
        error = self._errors.pop(0) if len(self._errors) > 1 else self._errors[0]
        found = SimpleNamespace(error=None, partitions={0: None})
        if error is not None:
            found = SimpleNamespace(error=KafkaError(error), partitions={})
        return SimpleNamespace(topics={topic: found})


@pytest.mark.parametrize("made", [True, False])
def test_a_topic_of_marks_that_is_not_there_is_none_without_marks(monkeypatch: pytest.MonkeyPatch, made: bool) -> None:
    """Its partitions are those of the answer that says that it is there."""

    def create(*_: object) -> None:
        if not made:
            raise SinkError("It may not be made.")

    monkeypatch.setattr(Topics, "_create", create)
    ours = KafkaSettings(servers="broker:9092", timeout=0.1)
    away = KafkaError.LEADER_NOT_AVAILABLE

    def marks(*errors: int | None) -> list[int]:
        brokers: Any = Listing(*errors)
        return Topics(ours, lambda: brokers).marks("marks")

    assert marks(None, away) == marks(away, away, None, away) == [0]
    for why in (away, KafkaError.TOPIC_AUTHORIZATION_FAILED):
        with pytest.raises(SinkError) as caught:
            marks(away, why)
        assert caught.value.hint == (
            "It is tried again." if made else "Create marks with one partition and cleanup.policy=compact."
        )
    with pytest.raises(SinkError, match="right to write to the topic"):
        marks(KafkaError.TOPIC_AUTHORIZATION_FAILED)


@pytest.mark.parametrize("mode", ["bare", "envelope"])
@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_what_our_own_limit_refuses_is_known_before_it_is_counted(mode: Any, encoding: Any) -> None:
    form = MessageFormat(settings=MessageSettings(mode=mode, encoding=encoding))
    for length in (0, 400, 2000):
        [written] = form.writer(CATALOG)([inserted(7, note="x" * length)])
        assert isinstance(written, WrittenMessage)
        [document] = form.bind([written.counted(1_000_000, last=False)])
        [message] = document.messages
        size = len(message.key or b"") + len(message.value or b"")
        for limit, taken in ((size - 1, False), (size, True), (size + 5000, True)):
            said = Frames(KafkaSettings(servers="b:1", max_message_bytes=limit)).refuses(written)
            assert (said is None) == taken
            assert taken or f"has {size} bytes" in str(said)
