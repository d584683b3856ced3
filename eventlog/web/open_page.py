"""Opens the page on an address, if it may be opened there and the extra is
installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from structlog.stdlib import BoundLogger

from eventlog.cli.site import read_address
from eventlog.config.settings import Config
from eventlog.core.packages import is_there, require
from eventlog.core.plugins import EndpointOrder, EndpointPlugin, ServedEndpoint
from eventlog.web.settings import settings_of

if TYPE_CHECKING:
    from eventlog.daemon.health import PublisherHealth
    from eventlog.web.server import PageServer


PACKAGES: Final = ("itsdangerous", "jinja2", "starlette", "uvicorn")
"""What the extra brings."""


def open_page(
    address: str,
    config: Config,
    journal: BoundLogger,
    vitals: PublisherHealth | None = None,
) -> PageServer:
    """Open the page on an address.

    ConfigError if the extra is missing, or if everybody could see it.
    """
    require("The page", *PACKAGES)
    from eventlog.web.log_opener import LogOpener
    from eventlog.web.server import PageServer

    return PageServer(address, LogOpener(config, vitals), journal, vitals)


def make_read_only(config: Config) -> Config:
    """Return the configuration with a read-only page."""
    return replace(config, tables={**config.tables, "web": replace(settings_of(config), read_only=True)})


def _beside_publisher(order: EndpointOrder) -> ServedEndpoint:
    """Serve the page; only the answers for programs if the extra or a needed guard is missing."""
    from eventlog.web.endpoint import Endpoint
    from eventlog.web.guard import is_open_door

    if not all(map(is_there, PACKAGES)):
        return Endpoint(order.address, order.vitals)
    if is_open_door(read_address(order.address)[0], settings_of(order.config)):
        why = "others reach this address; the page needs web.token or web.user_header there"
        order.journal.warning("page_off", why=why)
        return Endpoint(order.address, order.vitals)
    return open_page(order.address, order.config, order.journal, order.vitals)


ENDPOINT: Final = EndpointPlugin(open=_beside_publisher)
