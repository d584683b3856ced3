"""The Kafka sink against a real broker: who is believed, what is refused and in which words, and that it may be away."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from msgspec.structs import replace

from eventlog.core.errors import ConfigError, SinkError
from eventlog.core.model import Reason, Status
from eventlog.core.schema import Column
from eventlog.qlik.messages.reader import MessageReader
from eventlog.sinks.kafka.reading import topic_values
from eventlog.sinks.kafka.sink import KafkaSink
from tests.kafka.authority import Authority
from tests.support.messages import documents, inserted, orders
from tests.support.servers_kafka import QUIET, USERS, Broker, consumed, settings
from tests.support.sinks import opened, tenure


def numbers(broker: Broker, topic: str) -> list[int]:
    """The numbers of the orders in a topic, in its order."""
    return [msgspec.json.decode(one.value or b"")["data"]["order_id"] for one in consumed(broker.servers, topic)]


def test_a_message_that_is_too_large_is_set_aside_and_the_rest_goes_on(broker: Broker) -> None:
    topic = broker.topic(max_message_bytes="2000")
    notes = {2: "x" * 5000, 5: "y" * 3000}
    batch = documents([inserted(n, note=notes.get(n, "")) for n in range(1, 7)], topic=topic, batch_size=3)
    sink = KafkaSink(settings(broker.servers))
    said = sink.commit("a", batch)
    assert [(one.position, one.status, one.reason) for one in said] == [
        ((number,), Status.ERROR, Reason.REFUSED) for number in (2, 5)
    ]
    assert "raise the broker's limit" in (said[0].note or "")
    assert numbers(broker, topic) == [1, 3, 4, 6]
    assert sink.last() == batch[-1].id
    assert list(sink.commit("a", batch)) == list(sink.resolve("a").answers) == list(said)
    assert list(opened(sink).commit("a", batch)) == list(said)
    assert numbers(broker, topic) == [1, 3, 4, 6]
    sink.close()


@pytest.mark.parametrize("committed", [0, 1, 2])
def test_a_plan_whose_documents_go_one_by_one_may_break_off_between_them(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, committed: int
) -> None:
    topic = broker.topic(max_message_bytes="2000")
    batch = documents([inserted(n, note="x" * 5000 if n == 2 else "") for n in range(1, 5)], topic=topic, batch_size=1)
    sink = opened(KafkaSink(settings(broker.servers)), tenure())
    alone, left = KafkaSink._alone, iter(range(committed))

    def breaking(sink: KafkaSink, *positional: Any, **named: Any) -> Any:
        if next(left, None) is None:
            raise SinkError("The power goes.")
        return alone(sink, *positional, **named)

    with monkeypatch.context() as patch:
        patch.setattr(KafkaSink, "_alone", breaking)
        with pytest.raises(SinkError, match="The power goes"):
            sink.commit("a", batch)
    again = opened(KafkaSink(sink._settings), tenure(2))
    there = again.resolve("a")
    assert there.documents == frozenset(document.id for document in batch[:committed])
    assert [one.position for one in there.answers] == [(2,)] * (committed > 1)
    assert [one.position for one in again.commit("a", batch)] == [(2,)]
    assert [one.position for one in again.commit("a", batch)] == [(2,)]
    assert numbers(broker, topic) == [1, 3, 4]
    again.close()


def test_a_topic_that_is_missing_is_said_and_made_where_that_is_wanted(broker: Broker) -> None:
    batch = documents([inserted(1, customer="Ada")], topic="nobody.made.this")
    sink = KafkaSink(settings(broker.servers))
    with pytest.raises(SinkError, match=r"has no topic nobody\.made\.this.*create_topics") as caught:
        sink.commit("", batch)
    assert caught.value.may_pass
    broker.topic(name="nobody.made.this")
    assert list(sink.commit("", batch)) == []
    assert numbers(broker, "nobody.made.this") == [1]
    sink.close()
    batch = documents([inserted(1, customer="Ada")], topic="we.make.this")
    making = KafkaSink(settings(broker.servers, create_topics=True, partitions=2))
    assert list(making.commit("", batch)) == []
    assert numbers(broker, "we.make.this") == [1]
    making.close()


def test_metadata_are_told_before_the_data_and_again_when_a_column_is_added(broker: Broker) -> None:
    topic, about, ours = broker.topic(), broker.topic(), settings(broker.servers)
    how: dict[str, Any] = {"mode": "metadata", "encoding": "avro", "topic": topic, "metadata_topic": about}
    sink = KafkaSink(ours)
    first = documents([inserted(1, customer="Ada"), inserted(2, customer="Bob")], **how)
    sink.commit("", first)
    sink.close()
    wider = orders(Column(name="rank", type="integer"))
    second = documents([inserted(3, customer="Eve", rank=7)], wider, first[-1].id, **how)
    again = KafkaSink(ours)
    again.commit("", second)
    again.commit("", documents([inserted(4, customer="Joe", rank=8)], wider, second[-1].id, **how))
    reader = MessageReader()
    told = [reader.read(one.value) for one in consumed(broker.servers, about)]
    assert [(one.content or {})["lineage"]["tableVersion"] for one in told] == [1, 2]
    read = [reader.read(one.value) for one in consumed(broker.servers, topic)]
    assert [(one.row or {})["order_id"] for one in read] == [1, 2, 3, 4]
    assert "rank" not in (read[0].row or {})
    assert (read[-1].row or {})["rank"] == 8
    again.close()


@pytest.mark.in_turn
def test_a_broker_that_goes_and_comes_back_has_everything_once(broker: Broker) -> None:
    topic = broker.topic()
    batch = documents([inserted(n, customer="Ada") for n in range(1, 7)], topic=topic, batch_size=2)
    sink = KafkaSink(settings(broker.servers, timeout=30.0))
    opened(sink, tenure()).commit("a", batch[:1])
    sink._settings = replace(sink._settings, timeout=1.0)  # of who is away no answer is worth waiting for
    broker.stop()
    try:
        with pytest.raises(SinkError, match="does not") as caught:
            sink.commit("b", batch[1:])
        assert caught.value.may_pass
        with pytest.raises(SinkError, match="does not"):
            sink.open(tenure(2))
    finally:
        broker.start()
    back = KafkaSink(settings(broker.servers, transactional_id=sink._settings.transactional_id, timeout=30.0))
    opened(back, tenure(2)).commit("a", batch[:1])
    back.commit("b", batch[1:])
    assert numbers(broker, topic) == [1, 2, 3, 4, 5, 6]
    assert back.last() == batch[-1].id
    back.close()


def test_a_topic_whose_first_messages_are_gone_is_read_from_the_first_that_is_left(broker: Broker) -> None:
    """Brokers delete what is old, and a reader that begins at number 0 must not go to the end in place of the beginning."""
    topic = broker.topic()
    sink = KafkaSink(settings(broker.servers))
    sink.commit("a", documents([inserted(n) for n in range(1, 6)], topic=topic))
    sink.close()
    left = [value for _, value in topic_values(settings(broker.servers), topic)]
    assert len(left) == 5
    admin = AdminClient({"bootstrap.servers": broker.servers})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 3)]).values():
        assert deleted.result().low_watermark == 3
    assert [value for _, value in topic_values(settings(broker.servers), topic)] == left[3:]


WRONG = "wr0ng-pa55word"
LOGINS = ("plain", "scram-sha-256", "scram-sha-512")


def trusting(broker: Broker, **others: Any) -> dict[str, Any]:
    return {"tls": True, "ca_file": str(broker.authority.certificate), **others}


def certified(broker: Broker, **others: Any) -> dict[str, Any]:
    own = {"client_certificate": str(broker.writer.certificate), "client_key": str(broker.writer.key)}
    return trusting(broker, **own, **others)


def named(broker: Broker, sasl: str, user: str = "writer", password: str | None = None) -> dict[str, Any]:
    return trusting(broker, sasl=sasl, user=user, password=password or USERS[user])


def written(broker: Broker, servers: str, **how: Any) -> list[bytes | None]:
    """The keys that are in a new topic after a batch of two documents came that way, and again."""
    topic = broker.topic()
    sink = KafkaSink(settings(servers, **how))
    batch = documents([inserted(1, customer="Ada"), inserted(2, customer="Bob")], topic=topic, batch_size=1)
    try:
        assert list(sink.commit("", batch)) == []
        assert sink.last() == batch[-1].id
    finally:
        sink.close()
        found = [one.key for one in consumed(broker.servers, topic)]
    return found


def refused(broker: Broker, servers: str, **how: Any) -> SinkError:
    """What a sink says that gets nothing there."""
    with pytest.raises(SinkError) as caught:
        written(broker, servers, **{"timeout": 3.0, **how})
    said = str(caught.value)
    assert servers in said
    assert "\n" not in said
    for secret in (WRONG, *USERS.values()):
        assert secret not in said
    return caught.value


def test_who_shows_a_certificate_is_let_in(broker: Broker) -> None:
    for how in (certified(broker), trusting(broker, client_certificate=str(broker.writer.both))):
        assert written(broker, broker.tls, **how) == [b"1", b"2"]


@pytest.mark.parametrize("sasl", LOGINS)
def test_who_says_the_password_is_let_in(broker: Broker, sasl: str) -> None:
    assert written(broker, broker.login, **named(broker, sasl)) == [b"1", b"2"]


def test_a_wrong_password_is_said_and_waiting_does_not_help(broker: Broker) -> None:
    error = refused(broker, broker.login, **named(broker, "scram-sha-512", password=WRONG))
    assert "Check output.sasl, output.user and output.password." in str(error)
    assert not error.may_pass


def test_an_authority_that_nobody_named_is_not_believed(broker: Broker, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other").certificate
    error = refused(broker, broker.login, **(named(broker, "plain") | {"ca_file": str(other)}))
    assert "certificate verify failed" in str(error)
    assert "Check output.tls, output.ca_file" in str(error)
    assert not error.may_pass


def test_a_broker_under_another_name_is_not_believed(broker: Broker) -> None:
    elsewhere = broker.tls.replace("127.0.0.1", "localhost")
    error = refused(broker, elsewhere, **certified(broker))
    assert "certificate is for the host in output.servers" in str(error)
    assert not error.may_pass
    unchecked = {"ca_file": None, "verify": False}
    assert written(broker, elsewhere, **(certified(broker) | unchecked)) == [b"1", b"2"]


def test_who_shows_a_stranger_s_certificate_is_told_which_settings_say_it(broker: Broker, tmp_path: Path) -> None:
    stranger = Authority(tmp_path, "other").identity("writer")
    error = refused(broker, broker.tls, **trusting(broker, client_certificate=str(stranger.both)))
    assert "Check output.client_certificate and output.client_key" in str(error)
    assert not error.may_pass


def test_without_tls_or_with_too_much_of_it_the_silence_is_explained(broker: Broker) -> None:
    for servers, how in ((broker.tls, {}), (broker.servers, trusting(broker))):
        silent = refused(broker, servers, **how, timeout=1.0)
        assert "does not answer" in str(silent)
        assert "check output.tls and output.sasl" in str(silent)
        assert silent.may_pass


def test_files_that_are_no_certificates_are_refused_before_anybody_is_asked(broker: Broker) -> None:
    wrong = trusting(
        broker, client_certificate=str(broker.writer.certificate), client_key=str(broker.writer.certificate)
    )
    for how in (trusting(broker) | {"ca_file": str(broker.writer.key)}, wrong):
        with pytest.raises(ConfigError, match=r"refuses its settings: .*Check the files of output"):
            written(broker, "127.0.0.1:1", **how)


def test_a_user_needs_the_rights_that_the_documentation_names_and_no_others(broker: Broker) -> None:
    topic, marks = broker.topic(), broker.topic(cleanup_policy="compact")
    how = named(broker, "scram-sha-512", user="clerk")
    ours = settings(broker.login, marks_topic=marks, timeout=15.0, **how)
    batch = documents([inserted(1, customer="Ada")], topic=topic)

    def refused_us() -> str:
        with closing(KafkaSink(ours)) as sink, pytest.raises(SinkError) as caught:
            sink.commit("", batch)
        assert not caught.value.may_pass
        return str(caught.value)

    assert f"(topic {marks}) refuses us" in refused_us()
    allow(broker, ResourceType.TOPIC, marks, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.READ)
    assert "right to write and describe output.transactional_id" in refused_us()
    allow(broker, ResourceType.TRANSACTIONAL_ID, ours.transactional_id, AclOperation.WRITE, AclOperation.DESCRIBE)
    assert f"(topic {topic}) refuses us" in refused_us()
    assert consumed(broker.servers, topic) == []
    allow(broker, ResourceType.TOPIC, topic, AclOperation.WRITE, AclOperation.DESCRIBE)
    with closing(KafkaSink(ours)) as sink:
        assert list(sink.commit("", batch)) == []
    assert [one.key for one in consumed(broker.servers, topic)] == [b"1"]


def allow(broker: Broker, kind: ResourceType, name: str, *operations: AclOperation) -> None:
    """Gives the clerk rights."""
    admin = AdminClient({"bootstrap.servers": broker.servers, **QUIET})
    pattern, permission = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    bindings = [AclBinding(kind, name, pattern, "User:clerk", "*", one, permission) for one in operations]
    for made in admin.create_acls(bindings).values():
        made.result()
