"""Where transactions end of which rows wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection

from eventlog.sql.log import Log, id_list

MOST_ENDS_NUMBERS: Final = 100_000
"""Of so many transactions at most it is remembered where they end."""


class TransactionEnds:
    """Where transactions with waiting rows end. Many are asked for at once: it reads all rows."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._ends: dict[int, int] = {}

    def behind(self, connection: Connection, lasts: Mapping[int, int], first: int) -> dict[int, int]:
        """Return the end of each transaction whose end is above its last row here."""
        if any(transaction not in self._ends for transaction in lasts):
            self._ask(connection, first)
        ends = self._above(lasts)
        if ends:
            # Somebody may have requeued the first rows of a transaction whose others have statuses.
            still_waiting = self._log.query("still_waiting")
            waiting = self._log.rows(connection, still_waiting, {"ids": id_list([*ends.values()])})
            if len(waiting) < len(ends):
                self._ask(connection, first)
                ends = self._above(lasts)
        return ends

    def _ask(self, connection: Connection, first: int) -> None:
        asked = {"first": first, "most": MOST_ENDS_NUMBERS}
        ends = self._log.rows(connection, self._log.query("transaction_ends"), asked)
        self._ends = {int(mark): int(end) for mark, end in ends if mark is not None}

    def _above(self, lasts: Mapping[int, int]) -> dict[int, int]:
        ends = self._ends
        return {mark: ends[mark] for mark, last in lasts.items() if ends.get(mark, last) > last}
