"""The point about transactions: which one wrote a row, as change tables and messages tell it."""

from __future__ import annotations

from collections.abc import Iterator

from eventlog.admin.check.point import Point, ok
from eventlog.config.settings import Config
from eventlog.sql.dialect import Dialect
from eventlog.sql.names import LogNames


def transaction_points(dialect: Dialect, names: LogNames, config: Config) -> Iterator[Point]:
    """What the log can tell of transactions, where an output asks for them."""
    if all(output.format == "xds" for output in config.output):
        return
    if names.transaction is not None:
        yield ok("transaction ids", f"each row says in {names.transaction} which transaction wrote it")
    elif dialect.transaction_guess is not None:
        yield ok("transaction ids", f"the log has no column for transactions; {dialect.transaction_guess}")
    else:
        yield ok(
            "transaction ids", "this database does not say which transaction wrote a row: transaction ids stay empty"
        )
