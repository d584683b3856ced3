"""The Kafka sink over TLS, with certificates and with passwords: who is believed, who is refused, and in which words."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from eventlog.core.errors import ConfigError, SinkError
from eventlog.sinks.kafka.sink import KafkaSink
from tests.kafka.authority import Authority
from tests.support.messages import documents, inserted
from tests.support.servers_kafka import QUIET, USERS, Broker, consumed, settings

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
