"""Lists of the log's rows that read a bounded stretch of it, whatever is asked for, and say where to look further.

Where the log has an index of its numbers, a stretch is a run of them; waiting rows have an index of their own. A log
without either is read in stretches of the table as it lies on the disk: bounded too, and in order within a stretch.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.admin.rows import Choice, LogRow
from eventlog.core.model import Status
from eventlog.sql.log import Log
from eventlog.sql.queries import offers

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from eventlog.sql.names import LogNames

PAGE_ROWS: Final = 50
"""Rows of a page."""

REACH_ROWS: Final = 10_000
"""Rows that are looked through at once."""

PATIENCE_SECONDS: Final = 0.1
"""Seconds after which no further stretch is begun."""

WIDTH_CHARACTERS: Final = 200
"""Characters of a value in a list."""

BEYOND: Final = 2**62
"""A number that no row has."""


class Filters(Struct, frozen=True, kw_only=True):
    """Which rows are asked for; what is empty asks for nothing. `text` is looked for in keys, columns, values, notes."""

    letters: str = ""
    reason: str = ""
    table: str = ""
    key: str = ""
    text: str = ""

    @property
    def waiting(self) -> bool:
        """Whether only waiting rows can be meant."""
        return self.letters == Status.NEW

    def parameters(self) -> dict[str, Any]:
        """What the queries of web.sql take."""
        choice = Choice(letters=self.letters, reason=self.reason or None, table=self.table or None)
        escaped = self.text.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
        return choice.parameters() | {
            "any_key": int(not self.key),
            "key": self.key or " ",
            "any_text": int(not self.text),
            "pattern": f"%{escaped}%",
        }


class Cursor(Struct, frozen=True, kw_only=True):
    """Where a page begins: below a number, and where the disk's order is read, before a place."""

    before: int = BEYOND
    place: int | None = None


class Listing(Struct, frozen=True, kw_only=True):
    """A page of rows; `further` is where to go on, None at the end. `ordered`: no row of another page is newer."""

    rows: tuple[LogRow, ...]
    further: Cursor | None
    ordered: bool = True


class _Stretch(Struct, frozen=True, kw_only=True):
    """A part of the log as a condition and its parameters, and the cursor behind it."""

    condition: str
    parameters: dict[str, Any]
    behind: Cursor | None
    place: int | None = None


def listing(log: Log, filters: Filters, cursor: Cursor, *, numbered: bool, limit: int = PAGE_ROWS) -> Listing:
    """A page of the rows that are asked for; `numbered` says that the log has an index of its numbers."""
    by_place = not (numbered or filters.waiting) and has_places(log)
    step = _by_place if by_place else _by_number
    found: list[LogRow] = []
    end = monotonic() + PATIENCE_SECONDS
    further: Cursor | None = cursor
    with log.transaction() as connection:
        while further is not None and len(found) < limit:
            stretch = step(log, connection, filters, further)
            if stretch is None:
                further = None
                break
            wanted = limit - len(found)
            rows = _rows(log, connection, filters, stretch, before=further.before, limit=wanted, width=WIDTH_CHARACTERS)
            found += rows
            further = stretch.behind if len(rows) < wanted else Cursor(before=rows[-1].record_id, place=stretch.place)
            if monotonic() >= end:
                break
    return Listing(rows=tuple(found), further=further, ordered=not by_place)


def has_places(log: Log) -> bool:
    """Whether the database reads a part of a table by where it lies on the disk."""
    return offers(log.dialect, "list_places")


def one_row(log: Log, record_id: int) -> LogRow | None:
    """A row with all of its values."""
    stretch = _Stretch(condition="list_numbers", parameters={"low": record_id}, behind=None)
    with log.transaction() as connection:
        found = _rows(log, connection, Filters(), stretch, before=record_id + 1, limit=1, width=2**30)
    return found[0] if found else None


def has_number_index(engine: Engine, names: LogNames) -> bool:
    """Whether the database finds any row of the log by its number."""
    from sqlalchemy import inspect

    inspector, number = inspect(engine), names.column("record_id").casefold()
    key = inspector.get_pk_constraint(names.table, schema=names.schema)["constrained_columns"]
    indexes = inspector.get_indexes(names.table, schema=names.schema)
    whole = [index for index in indexes if not _is_partial(index)]
    first = {str(name) for name in key[:1]} | {str(name) for index in whole for name in index["column_names"][:1]}
    return number in {name.casefold() for name in first}


def _is_partial(index: Any) -> bool:
    return any(name.endswith("_where") for name in index.get("dialect_options", {}))


def _by_number(log: Log, connection: Connection, filters: Filters, cursor: Cursor) -> _Stretch | None:
    among = "list_waiting" if filters.waiting else "list_every"
    query = log.query("list_low", among=among)
    low, count = log.rows(connection, query, {"before": cursor.before, "reach": REACH_ROWS})[0]
    if low is None:
        return None
    return _Stretch(
        condition="list_waiting_numbers" if filters.waiting else "list_numbers",
        parameters={"low": int(low)},
        behind=Cursor(before=int(low)) if int(count) == REACH_ROWS else None,
    )


def _by_place(log: Log, connection: Connection, _filters: Filters, cursor: Cursor) -> _Stretch | None:
    table = {"log": log.dialect.qualified(log.names.schema, log.names.table)}
    end, reach = map(int, log.rows(connection, log.query("list_end"), table)[0])
    whole = -(-end // reach) * reach  # an address may name any place, and a table may have become smaller
    end = end if cursor.place is None else min(cursor.place, whole)
    if end <= 0:
        return None
    # Stretches lie where they lay for the page before, although the table has grown meanwhile.
    first = (end - 1) // reach * reach
    ends = {"first_place": first, "last_place": first + reach}
    first_place, last_place = log.rows(connection, log.query("list_bounds"), ends)[0]
    return _Stretch(
        condition="list_places",
        parameters={"first_place": first_place, "last_place": last_place},
        behind=Cursor(place=first) if first > 0 else None,
        place=first + reach,
    )


def _rows(
    log: Log, connection: Connection, filters: Filters, stretch: _Stretch, *, before: int, limit: int, width: int
) -> list[LogRow]:
    parameters = filters.parameters() | stretch.parameters | {"before": before, "limit": limit, "width": width}
    found = log.rows(connection, log.query("list_rows", stretch=stretch.condition), parameters)
    return [LogRow(**dict(zip(LogRow.__struct_fields__, row, strict=True))) for row in found]
