"""What the log says about objects: their newest row and what became of it, and whether rows about them wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection, bindparam, text

from eventlog.core.errors import SourceError
from eventlog.sql.access import in_text
from eventlog.sql.dialect import log_holes, statement
from eventlog.sql.log import Log

ASKED_KEYS: Final = 500

MOST_WAITING_KEYS: Final = 100_000
"""Objects with waiting rows that are remembered; with more of them a proof of a history has no sense."""


class LastRow(Struct, frozen=True, kw_only=True):
    """The newest row of the log about an object, and how many of its rows wait."""

    record_id: int
    waiting: int


class RowReason(Struct, frozen=True, kw_only=True):
    """What became of a row."""

    status: str
    reason: str | None
    note: str | None


class Objects:
    """The log's rows about the objects of one table, which it knows under some names."""

    def __init__(self, log: Log, called: Sequence[str]) -> None:
        self._log = log
        self._called = list(dict.fromkeys(called))

    def newest(self) -> int:
        """The highest number in the log."""
        with self._log.transaction() as connection:
            return int(self._ask(connection, "compare_newest", {})[0][0] or 0)

    def waiting(self) -> frozenset[str]:
        """The keys of which rows wait."""
        parameters = {"called": self._called, "limit": MOST_WAITING_KEYS}
        with self._log.transaction() as connection:
            found = self._ask(connection, "compare_waiting", parameters)
        if len(found) == MOST_WAITING_KEYS:
            problem = f"Rows of at least {MOST_WAITING_KEYS} objects of {self._called[0]} wait to be published."
            raise SourceError(
                problem,
                hint="Verify once they are; `eventlog status` says how many.",
                may_pass=True,
            )
        return frozenset([str(key) for (key,) in found])

    def last(self, keys: Sequence[str]) -> dict[str, LastRow]:
        """The newest row about each of these keys."""
        found: dict[str, LastRow] = {}
        with self._log.transaction() as connection:
            for start in range(0, len(keys), ASKED_KEYS):
                parameters = {
                    "called": self._called,
                    "keys": list(keys[start : start + ASKED_KEYS]),
                }
                for key, record, waiting in self._ask(connection, "compare_last", parameters):
                    found[str(key)] = LastRow(record_id=int(record), waiting=int(waiting or 0))
        return found

    def reasons(self, records: Sequence[int]) -> dict[int, RowReason]:
        """What became of these rows."""
        found: dict[int, RowReason] = {}
        with self._log.transaction() as connection:
            for start in range(0, len(records), ASKED_KEYS):
                parameters = {"records": list(records[start : start + ASKED_KEYS])}
                for record, status, reason, note in self._ask(connection, "compare_told", parameters):
                    found[int(record)] = RowReason(status=str(status), reason=reason, note=note)
        return found

    def _ask(self, connection: Connection, query: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
        log = self._log
        holes = {hole: in_text(sql) for hole, sql in log_holes(log.dialect, log.names).items()}
        lists: list[Any] = [
            bindparam(name, expanding=True) for name, value in parameters.items() if isinstance(value, list)
        ]
        return connection.execute(text(statement(log.dialect, query, **holes)).bindparams(*lists), parameters).all()
