"""A schema registry by HTTP: numbers, what it refuses, and what happens when it does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from msgspec.structs import replace

from eventlog.core.errors import ConfigError, ExpressionError, SinkError
from eventlog.sinks.kafka.registry import registry_of
from eventlog.sinks.kafka.settings import KafkaSettings
from eventlog.sinks.kafka.sink import KafkaSink
from tests.support.messages import documents, inserted
from tests.support.registry_server import PASSWORD, USER, RegistryServer
from tests.support.servers import free_port
from tests.support.servers_kafka import consumed, settings


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running


def with_registry(url: str, password: str = PASSWORD) -> KafkaSettings:
    return settings("127.0.0.1:1", registry=url, registry_user=USER, registry_password=password, registry_timeout=2.0)


def test_a_schema_has_one_number_and_the_number_gives_it_back(server: RegistryServer) -> None:
    registry = registry_of(with_registry(server.url))
    first, second = '{"type":"record","name":"A","fields":[]}', '{"type":"record","name":"B","fields":[]}'
    assert [registry.number_of("s/ü", first), registry.number_of("t", second), registry.number_of("s/ü", first)] == [
        1,
        2,
        1,
    ]
    assert (registry.schema_of(1), sorted(server.subjects)) == (first, ["s/ü", "t"])
    with pytest.raises(ExpressionError, match="no schema with the number 9"):
        registry.schema_of(9)


def test_who_may_not_is_told_so_without_the_password(server: RegistryServer) -> None:
    with pytest.raises(SinkError, match=r"refuses us \(401\)") as caught:
        registry_of(with_registry(server.url, "wrong")).number_of("s", "{}")
    assert not caught.value.may_pass
    assert "wrong" not in str(caught.value)


def test_a_header_of_one_s_own_takes_the_place_of_name_and_password(server: RegistryServer) -> None:
    header = urllib3.make_headers(basic_auth=f"{USER}:{PASSWORD}")["authorization"]
    ours = settings("127.0.0.1:1", registry=server.url, registry_authorization=header, registry_user="x")
    assert registry_of(ours).number_of("s", "{}") == 1
    with pytest.raises(SinkError, match=r"refuses us \(401\)") as caught:
        registry_of(replace(ours, registry_authorization="Bearer t0ken")).number_of("s", "{}")
    assert "t0ken" not in str(caught.value)
    with pytest.raises(SinkError, match=r"refuses us \(401\)"):
        registry_of(settings("127.0.0.1:1", registry=server.url)).number_of("s", "{}")


def test_a_registry_that_does_not_answer_may_come_back(server: RegistryServer) -> None:
    with pytest.raises(SinkError, match="does not answer") as caught:
        registry_of(with_registry(f"http://127.0.0.1:{free_port()}")).number_of("s", "{}")
    assert caught.value.may_pass
    server.broken = b"<html>"
    with pytest.raises(SinkError, match="no JSON"):
        registry_of(with_registry(server.url)).number_of("s", "{}")


@pytest.mark.parametrize("url", ["localhost:8081", "ftp://host", "http://user:secret@host"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        registry_of(with_registry(url))
    assert "secret" not in str(caught.value)


def test_nothing_is_written_while_the_registry_is_away(server: RegistryServer, mock_cluster: str) -> None:
    how: dict[str, Any] = {"mode": "registry", "encoding": "avro", "topic": "mock.away"}
    own = {"registry": f"http://127.0.0.1:{free_port()}", "registry_timeout": 1.0}
    batch = documents([inserted(1, customer="Ada")], **how)
    sink = KafkaSink(settings(mock_cluster, **own))
    with pytest.raises(SinkError, match=r"registry .* does not answer.*tried again") as caught:
        sink.commit("", batch)
    assert caught.value.may_pass
    assert (sink.last(), consumed(mock_cluster, "mock.away")) == ("", [])
    sink.close()
