"""What triggers need, tried before one is touched: a log that takes what they write, a server that
lets them be made.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from eventlog.core.errors import InstallError
from eventlog.sql.access import answers, is_denied, verbatim
from eventlog.sql.dialect import dialect_of, log_holes, number_holes, statement
from eventlog.sql.names import LogNames

_SHAPE: Final = "Its record_id must number itself and other columns need defaults; or list its ten in source.columns."

_RIGHT: Final = (
    "Track as the login that installed the log, or run `eventlog rights --installer ROLE` as somebody who may."
)


def try_triggers(connection: Connection) -> None:
    """InstallError when the server would refuse triggers whatever rights on tables there are."""
    for _, problem, hint in answers(connection, "making_triggers"):
        raise InstallError(str(problem), hint=str(hint))


def try_log(connection: Connection, names: LogNames) -> None:
    """Writes one row and undoes it; InstallError tells why a row cannot be written, or that it gets
    no number.
    """
    try:
        with connection.begin_nested() as attempt:
            unnumbered = _written(connection, names)
            # Nothing of the try stays, and a publisher never sees it.
            attempt.rollback()
    except SQLAlchemyError as error:
        problem = str(getattr(error, "orig", error)).partition("\n")[0].rstrip(".")
        hint = _SHAPE
        if is_denied(dialect_of(connection), getattr(error, "orig", None)):
            hint = _RIGHT
        message = f"The log {names.table} does not take the rows of triggers: {problem}."
        raise InstallError(message, hint=hint) from None
    if unnumbered:
        column = names.column("record_id")
        raise InstallError(f"The log {names.table} gives its rows no number.", hint=f"Let {column} number itself.")


def _written(connection: Connection, names: LogNames) -> int:
    dialect = dialect_of(connection)
    own = {"now": dialect.now, "user": dialect.user}
    holes = log_holes(dialect, names) | number_holes(dialect, names) | own
    write, count = (statement(dialect, query, **holes) for query in ("try_log", "count_unnumbered"))
    connection.execute(verbatim(write))
    return int(connection.execute(verbatim(count)).scalar_one())
