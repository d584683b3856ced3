"""The statements that somebody wants to be run after each cycle that published something."""

from __future__ import annotations

from collections.abc import Sequence

from structlog.stdlib import BoundLogger

from eventlog.core.errors import SourceError, shortened
from eventlog.sql.access import verbatim
from eventlog.sql.log import Log


def run_statements(log: Log, statements: Sequence[str], journal: BoundLogger) -> None:
    """Runs each in a transaction of its own. One that the database refuses is told and stops nobody: the rows are settled."""
    for statement in statements:
        try:
            with log.transaction() as connection:
                connection.execute(verbatim(statement))
        except SourceError as error:
            if error.may_pass:
                raise
            journal.error("post_poll_failed", statement=shortened(statement), error=str(error))
