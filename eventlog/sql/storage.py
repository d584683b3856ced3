"""Where the tables of a log lie, where somebody asks: a tablespace, and a partition for so many
rows of the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.core.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from sqlalchemy import Connection

# Before 12.2 a name had at most 30 characters in Oracle.
_tablespace = re.compile(r"[A-Za-z][A-Za-z0-9_$#]{0,29}")


class Storage(Struct, frozen=True, kw_only=True):
    """What is asked for; `partition_rows` is how many numbers of the log one partition has."""

    tablespace: str | None = None
    partition_rows: int | None = None

    def __post_init__(self) -> None:
        # It stands in statements as it is, so that the database folds it as it does when a DBA
        # writes it.
        if self.tablespace is not None and not _tablespace.fullmatch(self.tablespace):
            raise UsageError(
                f"{self.tablespace!r} is no name of a tablespace.",
                hint="It is written without quotes: letters, digits, _, $ and #, up to 30 of them.",
            )


UNSAID: Final = Storage()
"""What leaves all to the database."""

Writing = Callable[[str, Storage], str]
"""Writes the storage into a statement that makes a table or an index; every other statement stays
as it is.
"""


def writing(write: Writing | None, storage: Storage, database: str) -> Callable[[str], str]:
    """What is done to each statement; ConfigError where the database has no such storage and
    somebody asks for it.
    """
    if storage == UNSAID:
        return lambda statement: statement
    if write is None:
        raise ConfigError(
            f"eventlog does not say to {database} where to put tables.",
            hint="Leave out --tablespace and --partition-rows.",
        )
    known = write
    return lambda statement: known(statement, storage)


@contextmanager
def storing(connection: Connection, write: Callable[[str], str]) -> Iterator[None]:
    """Statements of this connection reach the database as `write` has them."""
    from sqlalchemy import event

    def stored(
        _connection: Any,
        _cursor: Any,
        statement: str,
        parameters: Any,
        _context: Any,
        _many: bool,
    ) -> tuple[str, Any]:
        return write(statement), parameters

    event.listen(connection, "before_cursor_execute", stored, retval=True)
    try:
        yield
    finally:
        event.remove(connection, "before_cursor_execute", stored)
