"""Addresses of the page. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from eventlog.care.listing import Cursor, Filters
    from eventlog.web.reading import TablePlace


def address(*path: str | int, **query: str | int | None) -> str:
    """Write a path of this page with a query; what is empty is left out."""
    asked = urlencode({name: entry for name, entry in query.items() if entry not in (None, "")}, errors="replace")
    return "/" + "/".join(quote(str(part), safe="", errors="replace") for part in path) + (f"?{asked}" if asked else "")


def list_address(filters: Filters, cursor: Cursor | None = None, *, path: str = "rows") -> str:
    """Write where the list of these rows is, or their CSV."""
    from eventlog.care.listing import BEYOND, Cursor  # which brings SQLAlchemy

    at = cursor or Cursor()
    return address(
        path,
        text=filters.text,
        status=filters.statuses,
        reason=filters.reason,
        table=filters.table,
        key=filters.key,
        before=at.before if at.before < BEYOND else None,
        place=at.block,
    )


def table_address(place: TablePlace, **query: str) -> str:
    """Write where the page of a table is: by its schema and its name."""
    schema, name = place
    return address("table", schema=schema, name=name, **query)
