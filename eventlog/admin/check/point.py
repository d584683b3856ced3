"""One line of `eventlog check`: how a point stands, what was found, what mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from msgspec import Struct

from eventlog.core.errors import EX_UNAVAILABLE, OK, EventlogError, MachineError


class PointLevel(StrEnum):
    """How a point stands; a warning is something to look at, with a failure nothing can be published or captured."""

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


def ok(name: str, said: str) -> Point:
    return Point(name=name, level=PointLevel.OK, said=said)


def warning(name: str, said: str, mend: str) -> Point:
    return Point(name=name, level=PointLevel.WARNING, said=said, mend=mend)


def failure(name: str, error: EventlogError) -> Point:
    """A failure that an error tells of; whether waiting would help is not this command's question."""
    code = EX_UNAVAILABLE if isinstance(error, MachineError) else error.exit_code
    return Point(name=name, level=PointLevel.FAILURE, said=error.message, mend=error.hint, exit_code=code)


def points(name: str, found: Callable[[], Iterable[Point]]) -> Iterator[Point]:
    """The points that are found; an error on the way is one, under this name."""
    from sqlalchemy.exc import SQLAlchemyError

    from eventlog.sql.connect import in_words

    try:
        yield from found()
    except EventlogError as error:
        yield failure(name, error)
    except SQLAlchemyError as error:
        yield failure(name, in_words(error, "The database refuses the question"))
