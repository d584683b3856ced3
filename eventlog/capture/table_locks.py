"""Waits for tables that others work with, and keeps their writers waiting for two seconds at most.

Whoever waits for a lock has all who come later wait behind it. So an attempt is short, and the
table is left to its writers until the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from eventlog.core.errors import SourceError
from eventlog.sql.access import is_held_up
from eventlog.sql.dialect import Dialect, dialect_of, offers, statement

WAIT_SECONDS: Final = 60.0
"""So long it is tried again."""
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 8.0
"""Seconds between two attempts; each pause is twice as long as the one before."""

NAMED_HOLDERS: Final = 3

Said = TypeVar("Said")
Done = TypeVar("Done")


class TableInUseError(SourceError):
    """Says that a lock on a table did not come in time; `statement` is what needed it."""

    statement = ""


def raise_if_in_use(dialect: Dialect, error: DBAPIError, seconds: float) -> None:
    """Raise TableInUseError if the error means a lock timed out after `seconds`."""
    if is_held_up(dialect, error) and not dialect.embedded:
        raised = _in_use(dialect, seconds)
        raised.statement = error.statement or ""
        raise raised from error


def try_while_in_use(work: Callable[[], Done], engine: Engine, note: Callable[[str], object]) -> Done:
    """Repeat the work while others use a table it needs; `note` hears their names.

    TableInUseError when it is in use for WAIT_SECONDS.
    """
    end, pause = time.monotonic() + WAIT_SECONDS, FIRST_PAUSE_SECONDS
    while True:
        try:
            return work()
        except TableInUseError as error:
            holders = find_holders(engine, error.statement)
            if time.monotonic() + pause >= end:
                raise _in_use(dialect_of(engine), WAIT_SECONDS, holders) from error
            note(f"Others work with the table{_name_holders(holders)}. Tries again in {pause:g} s.")
            time.sleep(pause)
            pause = min(LONGEST_PAUSE_SECONDS, 2 * pause)


def say_once(note: Callable[[Said], Done]) -> Callable[[Said], Done]:
    """Return a function passing on each message once, however often the work is repeated, with its answer."""
    said: list[tuple[Said, Done]] = []

    def say(words: Said) -> Done:
        answers = [answer for known, answer in said if known == words]
        if not answers:
            answers = [note(words)]
            said.append((words, answers[0]))
        return answers[0]

    return say


def find_holders(engine: Engine, needing: str) -> list[str]:
    """Describe the sessions using a statement's tables; none if nobody may know it."""
    dialect = dialect_of(engine)
    if not offers(dialect, "table_holders"):
        return []
    query, values = text(statement(dialect, "table_holders")), {"needing": needing}
    try:
        with engine.connect() as connection:
            return [str(words) for (words,) in connection.execute(query, values)][:NAMED_HOLDERS]
    except SQLAlchemyError:
        return []  # a right is missing to see the sessions of others


def _in_use(dialect: Dialect, seconds: float, holders: list[str] | None = None) -> TableInUseError:
    message = f"Somebody works with the table, and the lock on it did not come within {seconds:g} s"
    hint = "Try again when long transactions have ended."
    if dialect.ddl.transactional_ddl:
        hint += " Nothing was changed."
    return TableInUseError(f"{message}{_name_holders(holders or [])}.", hint=hint)


def _name_holders(holders: list[str]) -> str:
    return f": {'; '.join(holders)}" if holders else ""
