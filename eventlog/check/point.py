"""One line of `eventlog check`: how a point stands, what was found, what mends it.

And points that a query finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct
from sqlalchemy import Engine

from eventlog.core.errors import EX_CONFIG, EX_UNAVAILABLE, OK, EventlogError, MachineError
from eventlog.sql.access import fetch, in_text, transaction
from eventlog.sql.dialect import OUR_FAULT, dialect_of, log_holes, offers, statement
from eventlog.sql.names import LogNames


class PointLevel(StrEnum):
    """How a point stands; a warning is something to look at, with a failure nothing can be
    published or captured.
    """

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


class Point(Struct, frozen=True, kw_only=True):
    """What was found about one thing; `exit_code` is what a failure ends the command with."""

    name: str
    level: PointLevel
    said: str
    mend: str | None = None
    exit_code: int = OK


def ok(name: str, message: str) -> Point:
    return Point(name=name, level=PointLevel.OK, said=message)


def warning(name: str, message: str, mend: str) -> Point:
    return Point(name=name, level=PointLevel.WARNING, said=message, mend=mend)


def failure(name: str, error: EventlogError) -> Point:
    """Turn an error into a failure.

    The command does not ask if waiting would help.
    """
    code = EX_UNAVAILABLE if isinstance(error, MachineError) else error.exit_code
    return Point(name=name, level=PointLevel.FAILURE, said=error.message, mend=error.hint, exit_code=code)


def points(name: str, examine: Callable[[], Iterable[Point]]) -> Iterator[Point]:
    """Yield the found points; turn an error on the way into one, under this name."""
    from sqlalchemy.exc import SQLAlchemyError

    from eventlog.sql.access import in_words

    try:
        yield from examine()
    except EventlogError as error:
        yield failure(name, error)
    except SQLAlchemyError as error:
        yield failure(name, in_words(error, "The database refuses the question"))
    except Exception as error:  # noqa: BLE001  # one point that cannot be asked leaves the others standing
        yield failure(name, unforeseen(error))


def unforeseen(error: Exception) -> EventlogError:
    """Make an error for an exception without a sentence of its own: the command goes on to the next point."""
    message = f"This could not be looked at: {type(error).__name__}: {error}".rstrip(".")
    return EventlogError(f"{message}.", hint=OUR_FAULT)


def findings(
    engine: Engine,
    name: str,
    query: str,
    nothing: str,
    parameters: Mapping[str, Any] | None = None,
    names: LogNames | None = None,
) -> Iterator[Point]:
    """Report each row found by a query of check.sql; `names` fill its holes.

    A database without the query has no such point.
    """
    if not offers(dialect_of(engine), query):
        return

    def row_points() -> Iterator[Point]:
        rows = ask_query(engine, query, parameters, names)
        for level, message, mend in rows:
            code = OK
            if level == PointLevel.FAILURE:
                # A server that only reads may be a standby, which writes once it is the primary.
                code = EX_UNAVAILABLE if name == "writing" else EX_CONFIG
            yield Point(name=name, level=PointLevel(level), said=str(message), mend=str(mend), exit_code=code)
        if not rows:
            yield ok(name, nothing)

    yield from points(name, row_points)


def ask_query(
    engine: Engine,
    query: str,
    parameters: Mapping[str, Any] | None = None,
    names: LogNames | None = None,
) -> list[tuple[Any, ...]]:
    """Ask a query of check.sql; `names` fill its holes."""
    from sqlalchemy import text

    dialect = dialect_of(engine)
    holes = {} if names is None else {hole: in_text(sql) for hole, sql in log_holes(dialect, names).items()}
    with transaction(engine, "The server") as connection:
        return fetch(connection, text(statement(dialect, query, **holes)), parameters)
