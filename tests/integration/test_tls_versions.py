"""TLS 1.2 is the lowest version that any output speaks, whatever this system's OpenSSL would allow."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog.core.errors import EventlogError
from eventlog.core.model import Document
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.http.sink import HttpSink
from eventlog.sinks.kafka.registry import registry_of
from eventlog.sinks.kafka.sink import KafkaSink
from tests.integration.scripted_server import ScriptedServer, answer
from tests.kafka.authority import Authority
from tests.support.messages import documents, inserted
from tests.support.servers_kafka import settings


class OldServer(ScriptedServer):
    """A server that speaks nothing newer than TLS 1.1."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        self.authority = str(authority.certificate)
        super().__init__([answer(b'{"id": 1}')], _old(authority.identity("server", "127.0.0.1").both))

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


def _old(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _lenient(context)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.load_cert_chain(certificate)
    return context


def _lenient(context: ssl.SSLContext) -> None:
    """As on a system whose settings of OpenSSL forbid nothing."""
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED


@pytest.fixture
def old(tmp_path: Path) -> Iterator[OldServer]:
    with OldServer(tmp_path) as server:
        yield server


def test_http_speaks_tls_1_2_at_least(old: OldServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's Python leaves the lowest version to the system's settings of OpenSSL, which may allow any."""
    make = ssl.create_default_context

    def lenient(*, cafile: str | None = None) -> ssl.SSLContext:
        context = make(cafile=cafile)
        _lenient(context)
        return context

    monkeypatch.setattr(ssl, "create_default_context", lenient)
    sink = HttpSink(HttpSettings(url=old.url, ca_file=old.authority))
    with pytest.raises(EventlogError):
        sink.commit("", [Document(id="1", body=b"<n/>", covers={})])
    sink.close()
    assert old.requests == []


def test_a_registry_is_asked_over_tls_1_2_at_least(old: OldServer) -> None:
    registry = registry_of(settings("127.0.0.1:1", registry=old.url, registry_ca_file=old.authority))
    with pytest.raises(EventlogError):
        registry.number_of("s", "{}")
    assert old.requests == []


def test_kafka_is_reached_over_tls_1_2_at_least(old: OldServer) -> None:
    """Librdkafka brings an OpenSSL of its own, which speaks nothing older and has no setting for it."""
    sink = KafkaSink(settings(f"127.0.0.1:{old.port}", tls=True, ca_file=old.authority, timeout=2.0))
    with pytest.raises(EventlogError):
        sink.commit("", documents([inserted(1, customer="Ada")], topic="t", batch_size=1))
    sink.close()
    assert old.requests == []
