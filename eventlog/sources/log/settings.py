"""The settings of a log source."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from eventlog.core.backoff import Backoff


class LogSettings(Struct, frozen=True, kw_only=True):
    """How a log is read and marked.

    `clock` is SQL for the time that event_time is compared with (default: the database's, in UTC); `backoff` is how
    long rows wait after their receiver asked for another time, and `on_retry` what waits with them: everything, or
    the rows of the same object. With `transactions` each event says which one wrote it, where the database knows.
    `query_bytes` is how much the values of all batches that are on their way may have together, unless a single row has
    more; a row whose values have more than `value_limit` bytes is not read.
    """

    handle_future_events: bool = False
    delete_from_log: bool = False
    clock: str | None = None
    backoff: Backoff = Backoff()
    on_retry: Literal["stop", "object"] = "stop"
    transactions: bool = False
    query_bytes: int = 32_000_000
    value_limit: int = 64_000_000

    @property
    def share(self) -> int:
        """What the values of one batch may have, in bytes: while its documents are written two more are made ready."""
        return self.query_bytes // 3

    @property
    def transaction_column(self) -> str:
        """The query that adds the transaction to waiting rows; nobody asks for it with ""."""
        return "transaction_known" if self.transactions else ""
