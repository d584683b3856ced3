"""Where documents are POSTed, in what time, and whom we believe there."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from eventlog.core.errors import ConfigError, SinkError
from eventlog.core.outputs import OutputKeys
from eventlog.core.plugins import Finding

if TYPE_CHECKING:
    import ssl


MOST_CONNECTIONS: Final = 64
"""Connections to one address."""


class HttpSettings(OutputKeys, frozen=True, kw_only=True):
    """Where documents are POSTed and how.

    Times are in seconds; `total_timeout` ends a request whatever happens.

    `authorization` is the header's whole value, such as `Bearer …`; certificates and keys are PEM
    files. A reply of more than `reply_limit` bytes is not read. `proxy` is an address of http. Over
    several `connections` documents of different objects go at the same time.
    """

    url: str
    authorization: str | None = None
    connect_timeout: float = 10.0
    read_timeout: float = 60.0
    total_timeout: float = 120.0
    verify: bool = True
    ca_file: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    reply_limit: int = 1_048_576
    connections: int = 1
    proxy: str | None = None

    def __post_init__(self) -> None:
        """Refuses what no request could be made with; a secret never gets into the message."""
        for name in ("connect_timeout", "read_timeout", "total_timeout", "reply_limit"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"output.{name} is {getattr(self, name)}; it must be more than 0.")
        if not 1 <= self.connections <= MOST_CONNECTIONS:
            problem = f"output.connections is {self.connections}"
            raise ConfigError(f"{problem}; it must be between 1 and {MOST_CONNECTIONS}.")
        # Checked here, so that a wrong configuration ends the start and not the first document.
        try:
            parts = urlsplit(self.url)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            fits = False
        # A blank, a line's end or another control character would end up in the head of a request.
        if not fits or not self.url.isascii() or any(character <= " " for character in self.url):
            form = "http://… or https://…"
            raise ConfigError(f"output.url is no address that documents can be sent to; it is {form}.")
        if "@" in parts.netloc:
            raise ConfigError(
                "output.url holds a user or a password.",
                hint="Write them as `authorization`.",
            )
        if self.authorization is not None and not _is_header(self.authorization):
            problem = "output.authorization holds a character that no HTTP header can carry"
            raise ConfigError(f"{problem}; remove it.")
        if self.proxy is not None:
            try:  # `port` raises for what is no number
                parts = urlsplit(self.proxy)
                is_proxy = parts.scheme == "http" and bool(parts.hostname) and parts.port != 0
                is_proxy = is_proxy and parts.path in ("", "/")
            except ValueError:
                is_proxy = False
            if not is_proxy:
                raise ConfigError(
                    "output.proxy is no address of a proxy; it is http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT."
                )
        if not any(address.lower().startswith("https:") for address in self._addresses):
            for name in ("ca_file", "client_certificate"):
                if getattr(self, name) is not None:
                    message = (
                        f"output.{name} is about TLS, and output.url begins with http://: it would be sent without."
                    )
                    raise ConfigError(message, hint=f"Write https://…, or leave {name} out.")
        if self.client_key and not self.client_certificate:
            raise ConfigError("output.client_key needs output.client_certificate beside it.")

    @property
    def _addresses(self) -> tuple[str, ...]:
        """List the addresses to which there are connections."""
        return (self.url,)


def trust(settings: HttpSettings) -> ssl.SSLContext:
    """Load our certificate and trusted authorities; raise ConfigError for an unusable file."""
    import ssl

    names = ("ca_file", "client_certificate", "client_key")
    named = {name: file for name in names if (file := getattr(settings, name)) is not None}
    for name, file in named.items():
        if not Path(file).is_file():
            raise ConfigError(f"output.{name} names {file}, and there is no such file; correct the path.")
        if not os.access(file, os.R_OK):
            raise ConfigError(f"output.{name} names {file}, and this user may not read it; change its owner or mode.")
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
        # Not every system's Python has a lowest version of its own.
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if settings.client_certificate:
            # A key with a password would have OpenSSL ask for it on the terminal, which a daemon
            # has not.
            certificate, key = settings.client_certificate, settings.client_key
            context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ssl.SSLError) as error:
        hint = "Check ca_file, client_certificate and client_key: PEM files, the key without a password."
        files = "".join(f" ({name} {file})" for name, file in named.items())
        raise ConfigError(
            f"The output's certificates{files} cannot be used: {error.strerror or error}.",
            hint=hint,
        ) from error
    if not settings.verify:
        # In this order: Python takes no CERT_NONE while names are still checked.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def reach(settings: HttpSettings) -> Finding:
    """Try to connect as documents will; return the finding for `eventlog check`."""
    # Behind a proxy only that is reached; what it can reach nobody knows before a document goes.
    parts, by = urlsplit(settings.url), urlsplit(settings.proxy or settings.url)
    usual_port = 443 if by.scheme == "https" else 80
    host, port = str(by.hostname), by.port or usual_port
    address = f"{by.scheme}://{host}:{port}"
    context = trust(settings) if parts.scheme == "https" else None
    try:
        timeout = settings.connect_timeout
        with closing(socket.create_connection((host, port), timeout=timeout)) as reached:
            if context is not None and not settings.proxy:
                context.wrap_socket(reached, server_hostname=host).close()
    except OSError as error:
        hint = "Start what listens there, or change the output's `url`."
        raise SinkError(
            f"{address} cannot be reached: {error.strerror or error}.",
            hint=hint,
        ) from error
    return Finding(message=f"{address} takes connections")


def _is_header(value: str) -> bool:
    return value.isprintable() and value.isascii() and bool(value.strip())
