"""Outputs over TLS: whom they believe, who they are, what they say when they do not believe; and TLS 1.2 at least."""

from __future__ import annotations

import socket
import ssl
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, Self

import pytest

from eventlog.core.errors import EventlogError, SinkError
from eventlog.core.model import Document
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.http.sink import HttpSink
from eventlog.sinks.kafka.registry import registry_of
from eventlog.sinks.kafka.sink import KafkaSink
from tests.integration.scripted_server import ScriptedServer, answer, drop_by_drop
from tests.kafka.authority import Authority, Identity
from tests.support.messages import documents, inserted
from tests.support.servers_kafka import settings

DOCUMENT = Document(id="1", body=b"<n/>", covers={})


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def receiver(authority: Authority) -> Identity:
    return authority.identity("server", "127.0.0.1")


def context(server: Identity, clients: Authority | None = None) -> ssl.SSLContext:
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.load_cert_chain(server.both)
    if clients is not None:
        found.verify_mode = ssl.CERT_REQUIRED
        found.load_verify_locations(clients.certificate)
    return found


def send(server: ScriptedServer, host: str = "127.0.0.1", **given: Any) -> None:
    """Sends two documents; SinkError when they are not taken."""
    sink = HttpSink(HttpSettings(url=f"https://{host}:{server.port}/", **given))
    try:
        assert list(sink.commit("", [DOCUMENT, DOCUMENT])) == []
    finally:
        sink.close()


@pytest.mark.parametrize("host, believed", [("127.0.0.1", {}), ("localhost", {"verify": False})])
def test_who_is_believed_gets_all_over_one_connection(
    authority: Authority, receiver: Identity, host: str, believed: dict[str, Any]
) -> None:
    with ScriptedServer([answer()], context(receiver)) as server:
        send(server, host, **(believed or {"ca_file": str(authority.certificate)}))
    assert (len(server.requests), server.connections) == (2, 1)


@pytest.mark.parametrize("why, until_days", [("self-signed", 2), ("match", 2), ("expired", -1)])
def test_what_is_not_to_be_believed_gets_no_document(
    authority: Authority, tmp_path: Path, why: str, until_days: int
) -> None:
    receiver = authority.identity("server", "127.0.0.1", until_days=until_days)
    host = "localhost" if why == "match" else "127.0.0.1"
    named = Authority(tmp_path, "other") if why == "self-signed" else authority
    with ScriptedServer([answer()], context(receiver)) as server, pytest.raises(SinkError) as caught:
        send(server, host, ca_file=str(named.certificate))
    assert not caught.value.may_pass
    assert "is not trusted" in str(caught.value)
    assert why in str(caught.value)
    assert server.requests == []


def test_tls_to_a_server_that_speaks_none_does_not_pass_by_waiting() -> None:
    def refuse() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=refuse, daemon=True)
        thread.start()
        sink = HttpSink(HttpSettings(url=f"https://127.0.0.1:{listener.getsockname()[1]}/"))
        with pytest.raises(SinkError, match="no way to speak TLS") as caught:
            sink.commit("", [DOCUMENT])
        thread.join(5)
    assert not caught.value.may_pass


def test_a_receiver_that_hangs_is_left_over_tls_too(authority: Authority, receiver: Identity) -> None:
    slowly = drop_by_drop(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100, 0.05)
    with ScriptedServer([slowly], context(receiver)) as server, pytest.raises(SinkError, match="not answer in time"):
        send(server, ca_file=str(authority.certificate), total_timeout=0.5)
    assert len(server.requests) == 1


class Tunnel:
    """A proxy that carries one connection through, and remembers what it was asked for."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.asked = ""
        self._thread = Thread(target=self._carry, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self._thread.join(5)

    def _carry(self) -> None:
        inner, _ = self._listener.accept()
        self.asked = inner.recv(65536).decode()
        with inner, socket.create_connection(("127.0.0.1", self._target)) as outer:
            inner.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = Thread(target=pumped, args=(outer, inner), daemon=True)
            back.start()
            pumped(inner, outer)
            back.join(5)


def pumped(source: socket.socket, target: socket.socket) -> None:
    """Carries bytes until one side ends."""
    with suppress(OSError):
        while more := source.recv(65536):
            target.sendall(more)
        target.shutdown(socket.SHUT_WR)


def test_a_proxy_carries_what_only_the_receiver_can_read(authority: Authority, receiver: Identity) -> None:
    """The certificate is the receiver's, and ours goes to it: the proxy sees a name, a port and its own login."""
    client = authority.identity("publisher")
    ours = {"client_certificate": str(client.certificate), "client_key": str(client.key)}
    with ScriptedServer([answer()], context(receiver, authority)) as server, Tunnel(server.port) as tunnel:
        believed = {"ca_file": str(authority.certificate)}
        with pytest.raises(SinkError):
            send(server, **believed)
        send(server, **believed, **ours, proxy=f"http://user:pass@127.0.0.1:{tunnel.port}")
        assert len(server.requests) == 2
        assert "proxy-authorization" not in server.requests[0][0].lower()
    assert tunnel.asked.startswith(f"CONNECT 127.0.0.1:{server.port} HTTP/1")
    assert "Proxy-Authorization: Basic dXNlcjpwYXNz" in tunnel.asked


def lenient(context: ssl.SSLContext) -> None:
    """As on a system whose settings of OpenSSL forbid nothing."""
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED


@pytest.fixture
def old(receiver: Identity) -> Iterator[ScriptedServer]:
    """A server that speaks nothing newer than TLS 1.1."""
    speaking = context(receiver)
    lenient(speaking)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        speaking.maximum_version = ssl.TLSVersion.TLSv1_1
    with ScriptedServer([answer(b'{"id": 1}')], speaking) as server:
        yield server


def speak(output: str, old: ScriptedServer, ca: str) -> None:
    """Asks the server something as that output does."""
    if output == "http":
        send(old, ca_file=ca)
    elif output == "registry":
        url = f"https://127.0.0.1:{old.port}"
        registry_of(settings("127.0.0.1:1", registry=url, registry_ca_file=ca)).number_of("s", "{}")
    else:
        sink = KafkaSink(settings(f"127.0.0.1:{old.port}", tls=True, ca_file=ca, timeout=1.0))
        sink.commit("", documents([inserted(1, customer="Ada")], topic="t", batch_size=1))


@pytest.mark.parametrize("output", ["http", "registry", "kafka"])
def test_nothing_older_than_tls_1_2_is_spoken(
    old: ScriptedServer, authority: Authority, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's Python leaves the lowest version to the system's settings of OpenSSL; librdkafka brings an OpenSSL of its own."""
    make = ssl.create_default_context

    def allowing(*, cafile: str | None = None) -> ssl.SSLContext:
        made = make(cafile=cafile)
        lenient(made)
        return made

    if output == "http":
        monkeypatch.setattr(ssl, "create_default_context", allowing)
    with pytest.raises(EventlogError):
        speak(output, old, str(authority.certificate))
    assert old.requests == []
