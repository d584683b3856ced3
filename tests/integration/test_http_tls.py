"""The HTTP sink over TLS: whom it believes, who it is, and what it says when it does not believe."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Self

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import SinkError
from eventlog.core.model import Document
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.http.sink import HttpSink
from tests.integration.scripted_server import ScriptedServer, answer, drop_by_drop

DOCUMENT = Document(id="1", body=b"<n/>", covers={})


class Identity(Struct, frozen=True, kw_only=True):
    """A certificate that signed itself, and its key, as PEM files."""

    certificate: Path
    key: Path


def identity(folder: Path, name: str, *, days: int = 1) -> Identity:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    names: list[x509.GeneralName] = [x509.DNSName(name)]
    if name == "localhost":
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    end = dt.datetime.now(tz=dt.UTC) + dt.timedelta(days=days)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - dt.timedelta(days=9))
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = Identity(certificate=folder / f"{name}.pem", key=folder / f"{name}.key")
    files.certificate.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


def context(server: Identity, clients: Identity | None = None) -> ssl.SSLContext:
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.load_cert_chain(server.certificate, server.key)
    if clients is not None:
        found.verify_mode = ssl.CERT_REQUIRED
        found.load_verify_locations(clients.certificate)
    return found


def send(server: ScriptedServer, **settings: object) -> None:
    """Sends two documents; SinkError when they are not taken."""
    sink = HttpSink(replace(HttpSettings(url=server.url), **settings))
    try:
        assert list(sink.commit("", [DOCUMENT, DOCUMENT])) == []
    finally:
        sink.close()


def test_an_authority_that_is_named_is_believed_and_the_connection_is_kept(tmp_path: Path) -> None:
    us = identity(tmp_path, "localhost")
    with ScriptedServer([answer()], context(us)) as server:
        send(server, ca_file=str(us.certificate))
    assert (len(server.requests), server.connections) == (2, 1)


@pytest.mark.parametrize(
    "name,days,why", [("localhost", 1, "self"), ("localhost", -1, "expired"), ("other", 1, "match")]
)
def test_what_is_not_to_be_believed_gets_no_document(tmp_path: Path, name: str, days: int, why: str) -> None:
    us = identity(tmp_path, name, days=days)
    believed = {} if why == "self" else {"ca_file": str(us.certificate)}
    with ScriptedServer([answer()], context(us)) as server, pytest.raises(SinkError) as caught:
        send(server, **believed)
    assert not caught.value.may_pass
    assert "is not trusted" in str(caught.value)
    assert why in str(caught.value)
    assert server.requests == []


def test_verification_can_be_switched_off(tmp_path: Path) -> None:
    with ScriptedServer([answer()], context(identity(tmp_path, "other"))) as server:
        send(server, verify=False)
    assert len(server.requests) == 2


def test_a_client_certificate_says_who_we_are(tmp_path: Path) -> None:
    us, them = identity(tmp_path, "localhost"), identity(tmp_path, "publisher")
    believed = {"ca_file": str(us.certificate)}
    with ScriptedServer([answer()], context(us, them)) as server:
        send(server, client_certificate=str(them.certificate), client_key=str(them.key), **believed)
        with pytest.raises(SinkError):
            send(server, **believed)
    assert len(server.requests) == 2


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


def test_a_receiver_that_hangs_is_left_over_tls_too(tmp_path: Path) -> None:
    us = identity(tmp_path, "localhost")
    slowly = drop_by_drop(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100, 0.05)
    with ScriptedServer([slowly], context(us)) as server, pytest.raises(SinkError, match="did not answer in time"):
        send(server, ca_file=str(us.certificate), total_timeout=0.5)
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


def test_a_proxy_carries_what_only_the_receiver_can_read(tmp_path: Path) -> None:
    """The certificate is the receiver's, and ours goes to it: the proxy sees a name, a port and its own login."""
    me, client = identity(tmp_path, "localhost"), identity(tmp_path, "publisher")
    with ScriptedServer([answer()], context(me, client)) as server, Tunnel(server.port) as tunnel:
        send(
            server,
            ca_file=str(me.certificate),
            client_certificate=str(client.certificate),
            client_key=str(client.key),
            proxy=f"http://user:pass@127.0.0.1:{tunnel.port}",
        )
        assert len(server.requests) == 2
        assert "proxy-authorization" not in server.requests[0][0].lower()
    assert tunnel.asked.startswith(f"CONNECT localhost:{server.port} HTTP/1")
    assert "Proxy-Authorization: Basic dXNlcjpwYXNz" in tunnel.asked
