"""Catalogs of Iceberg, opened by PyIceberg from its own properties, and what they answer in our words.

Law: nobody is waited for for ever. PyIceberg asks a catalog over HTTP without any limit of time.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from pyiceberg.catalog import AVAILABLE_CATALOGS, Catalog, CatalogType, load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError, ForbiddenError, OAuthError, UnauthorizedError
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectionError as NoConnectionError
from requests.exceptions import Timeout
from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError

from eventlog.core.errors import ConfigError, SinkError
from eventlog.sinks.store.objects import ANSWER_SECONDS
from eventlog.sql.access import make_durable
from eventlog.sql.dialect import dialect_of

CONNECT_SECONDS: Final = 5
CATALOG_ANSWERS: Final[tuple[tuple[tuple[type[Exception], ...], str, str], ...]] = (
    (
        (NoConnectionError, Timeout, OperationalError),
        "does not answer",
        "Look at output.catalog and the network",
    ),
    (
        (UnauthorizedError, OAuthError),
        "does not know these credentials",
        "Correct output.catalog",
    ),
    (
        (ForbiddenError,),
        "does not allow that with these credentials",
        "Give them the right to create and write tables",
    ),
    (
        (BadRequestError,),
        "does not accept what it is asked",
        "Look at output.catalog, its warehouse above all",
    ),
)
"""What a catalog answers by itself, before a table is looked at, and what to do then."""


class ImpatientCatalog(RestCatalog):
    """A catalog over HTTP whose answers are not waited for for ever."""

    def _config_headers(self, session: Session) -> None:
        """Set time limits on each session, before even a token is fetched."""
        super()._config_headers(session)
        for scheme in ("https://", "http://"):
            session.mount(scheme, _ImpatientAdapter())


class _ImpatientAdapter(HTTPAdapter):
    def send(self, request: PreparedRequest, *positional: Any, **named: Any) -> Response:
        # requests waits for ever where nobody says how long.
        named["timeout"] = named.get("timeout") or (CONNECT_SECONDS, ANSWER_SECONDS)
        return super().send(request, *positional, **named)


def open_catalog(properties: Mapping[str, Any]) -> Catalog:
    """Open the catalog with these properties."""
    # The library takes the class of a catalog from this table, and no other argument says which.
    AVAILABLE_CATALOGS[CatalogType.REST] = lambda name, known: ImpatientCatalog(name, **known)
    catalog = load_catalog(**properties)
    engine = getattr(catalog, "engine", None)
    if isinstance(engine, Engine):
        with suppress(ConfigError):  # a database that eventlog does not know has settings of its own
            dialect = dialect_of(engine)
            event.listen(engine, "begin", lambda connection: make_durable(connection, dialect))
    return catalog


def catalog_trouble(table: str, error: Exception) -> SinkError | None:
    """Return an error if the catalog failed; None if the table did."""
    for kinds, why, mend in CATALOG_ANSWERS:
        if isinstance(error, kinds):
            hint = f"{mend}; it is tried again, and nothing is lost."
            return SinkError(f"The catalog of {table} {why}.", hint=hint)
    return None
