"""Who may see the status page and act on it, as the configuration says it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final

from eventlog.config.settings import Config
from eventlog.core.errors import ConfigError
from eventlog.core.plugins import CheckPlugin, Finding, TablePlugin
from eventlog.core.secrets import SecretSettings

TOKEN_CHARACTERS: Final = 16
"""Characters of a token that nobody finds by trying."""

CURVES: Final = b'{"database":'
"""How a file of kept curves begins."""


class WebConfig(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may see the page: this machine alone, unless a `token` or the `user_header` of a proxy
    says who asks.

    The header is believed when it comes from one of the `proxies`, addresses or networks, and asks
    for one of the `hosts`: a browser on the proxy's machine could be made to send it under another
    name. With `read_only` nobody acts. `history` is a file in which the curves are kept over a
    restart.
    """

    token: str | None = None
    user_header: str | None = None
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    hosts: tuple[str, ...] = ()
    read_only: bool = False
    history: str | None = None

    def __post_init__(self) -> None:
        # Headers of HTTP carry nothing but ASCII for certain.
        if self.token is not None and (len(self.token) < TOKEN_CHARACTERS or not self.token.isascii()):
            raise ConfigError(
                f"web.token takes {TOKEN_CHARACTERS} ASCII characters or more; `openssl rand -hex 32` makes one."
            )
        if self.user_header is not None and not self.user_header.replace("-", "").isalnum():
            raise ConfigError("web.user_header is no name of an HTTP header; it is written as X-Forwarded-User.")
        if self.user_header is not None and not self.hosts:
            raise ConfigError("web.user_header needs web.hosts: the names by which the proxy's users ask for the page.")
        for proxy in self.proxies:
            try:
                # Not strict: 10.1.2.3/16 means the network that it lies in.
                ip_network(proxy, strict=False)
            except ValueError:
                raise ConfigError(
                    f"web.proxies has {proxy!r}, which is no address and no network; write 10.1.2.3 or 10.1.0.0/16."
                ) from None

    @property
    def guarded(self) -> bool:
        """Return True if a login is required."""
        return self.token is not None or self.user_header is not None

    def answers(self, name: str) -> bool:
        """Return True if the page answers to this name."""
        # A name of DNS may end with a dot and means the same.
        return not self.hosts or name.lower().rstrip(".") in {host.lower() for host in self.hosts}

    def believes(self, peer: str) -> bool:
        """Return True if the user header from this address is trusted."""
        try:
            # A link-local address of IPv6 has its interface behind the %.
            address = ip_address(peer.partition("%")[0])
        except ValueError:
            return False
        # A server that listens on IPv6 sees visitors by IPv4 as ::ffff:10.1.2.3.
        known = getattr(address, "ipv4_mapped", None) or address
        return any(known in ip_network(proxy, strict=False) for proxy in self.proxies)


def settings_of(config: Config) -> WebConfig:
    """Return `[web]` of a configuration."""
    settings: WebConfig = config.table("web")
    return settings


def holds_other_things(file: Path) -> bool:
    """Return True if the file is there and was not written to keep curves."""
    try:
        with file.open("rb") as opened:
            # Also what a full disk has torn is ours.
            return not CURVES.startswith(opened.read(len(CURVES)))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _try_history(config: Config) -> Iterator[Finding]:
    """Yield whether the file of the curves can be written; nothing where none is named."""
    history = settings_of(config).history
    if history is None:
        return
    # A new file takes the place of the former one, so the folder is what must be writable.
    folder = Path(history).absolute().parent
    problem = None
    if not folder.is_dir():
        problem = f"there is no folder {folder}"
    elif not os.access(folder, os.W_OK | os.X_OK):
        problem = f"this user may not write into {folder}"
    elif holds_other_things(Path(history)):
        problem = "that holds something else, or cannot be read"
    if problem is None:
        yield Finding(message=f"the curves are kept in {history}")
        return
    mend = "Change web.history, the folder or its mode; until then the curves start again with the process."
    yield Finding(message=f"web.history is {history}, and {problem}.", mend=mend)


TABLE: Final = TablePlugin(settings=WebConfig)
CHECK: Final = CheckPlugin(findings=_try_history)
