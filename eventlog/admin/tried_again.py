"""What somebody else's lock has stopped is tried again: of two that wait for each other the database ends one, who has left nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from eventlog.core.errors import SourceError
from eventlog.sql.error_codes import is_held_up

if TYPE_CHECKING:
    from eventlog.sql.log import Log

TRIES: Final = 3

Work = TypeVar("Work", bound=Callable[..., Any])


def tried_again(work: Work) -> Work:
    """Lets a function whose first argument is the log, and which does all in one transaction, be tried again."""

    @wraps(work)
    def again(log: Log, *given: Any, **named: Any) -> Any:
        for _ in range(TRIES - 1):
            try:
                return work(log, *given, **named)
            except SourceError as error:
                if not stopped_by_lock(log, error):
                    raise
        return work(log, *given, **named)

    return cast("Work", again)


def stopped_by_lock(log: Log, error: SourceError) -> bool:
    """Whether somebody else held a lock that a statement needed."""
    said = error.__cause__
    return is_held_up(log.dialect, getattr(said, "orig", None) or said)
