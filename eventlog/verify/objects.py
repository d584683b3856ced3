"""What the log says about objects: their newest row and what became of it, and whether rows about
them wait.

A row waits until every output has it. For one output it is over before, which the journal shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection, bindparam, text

from eventlog.core.errors import SourceError
from eventlog.publisher.memory import read_memory
from eventlog.sql.access import in_text
from eventlog.sql.dialect import log_holes, statement
from eventlog.sql.log import Log

ASKED_KEYS: Final = 500

MOST_WAITING_ROWS: Final = 100_000
"""Waiting rows whose objects are remembered; with more of them a proof of a history has no
sense.
"""


class LastRow(Struct, frozen=True, kw_only=True):
    """The newest row of the log about an object, and how many of its rows wait for the output."""

    record_id: int
    waiting: int


class RowReason(Struct, frozen=True, kw_only=True):
    """What became of a row."""

    status: str
    reason: str | None
    note: str | None


class Objects:
    """The log's rows about the objects of one table, which it knows under some names, and the
    output that is compared.
    """

    def __init__(self, log: Log, called: Sequence[str], output: str = "") -> None:
        self._log = log
        self._called = list(dict.fromkeys(called))
        self._output = output

    def newest(self) -> int:
        """Read the highest number in the log."""
        with self._log.moment() as connection:
            return int(self._ask(connection, "newest_number", {})[0][0] or 0)

    def waiting(self) -> frozenset[str]:
        """Read the keys with rows waiting for the output."""
        parameters = {"called": self._called, "limit": MOST_WAITING_ROWS}
        with self._log.moment() as connection:
            waiting = self._ask(connection, "compare_waiting", parameters)
            if len(waiting) == MOST_WAITING_ROWS:
                rows = f"At least {MOST_WAITING_ROWS} rows of {self._called[0]}"
                raise SourceError(
                    f"{rows} wait to be published.",
                    hint="Verify once they are; `eventlog status` says how many.",
                    may_pass=True,
                )
            return frozenset(self._for_output(connection, waiting))

    def last(self, keys: Sequence[str]) -> dict[str, LastRow]:
        """Find the newest row about each of these keys."""
        newest: dict[str, int] = {}
        waiting: list[tuple[Any, ...]] = []
        with self._log.moment() as connection:
            for start in range(0, len(keys), ASKED_KEYS):
                asked = {"called": self._called, "keys": list(keys[start : start + ASKED_KEYS])}
                rows = self._ask(connection, "compare_last", asked)
                newest |= {str(key): int(record) for key, record, _ in rows}
                # Which ones wait is asked only where some do.
                if any(many for _, _, many in rows):
                    waiting += self._ask(connection, "compare_waiting_of", asked)
            many = Counter(self._for_output(connection, waiting))
        return {key: LastRow(record_id=record, waiting=many[key]) for key, record in newest.items()}

    def _for_output(self, connection: Connection, waiting: Sequence[Any]) -> list[str]:
        """Read the keys of waiting rows, except rows waiting only for other outputs."""
        records = [int(record) for record, _ in waiting]
        over = frozenset[int]()
        if self._output and records:
            over = self._over(connection, records)
        return [str(key) for record, key in waiting if int(record) not in over]

    def _over(self, connection: Connection, records: Sequence[int]) -> frozenset[int]:
        """Find waiting rows already finished for the output."""
        memory = read_memory(connection, self._log)
        output = memory.outputs.get(self._output)
        if output is None:
            return frozenset()
        parked: list[tuple[int, str]] = []
        for start in range(0, len(records), ASKED_KEYS):
            asked = {"records": list(records[start : start + ASKED_KEYS])}
            rows = self._ask(connection, "compare_parked", asked)
            parked += [(int(record), str(name)) for record, name in rows]
        # What the output has still to get: its plan, sealed batches, and what is parked for it.
        ahead = memory.lacking(self._output)
        lacked = {record for record, name in parked if name == self._output}
        # A row that nobody has sealed yet is in none of the tables.
        parked_anywhere = {record for record, _ in parked}
        over = []
        for record in records:
            is_sealed = record in memory.taken or record in parked_anywhere
            if is_sealed and record not in ahead and record not in lacked:
                over.append(record)
        return frozenset(over)

    def reasons(self, records: Sequence[int]) -> dict[int, RowReason]:
        """Read the outcomes of these rows."""
        reasons: dict[int, RowReason] = {}
        with self._log.moment() as connection:
            for start in range(0, len(records), ASKED_KEYS):
                asked = {"records": list(records[start : start + ASKED_KEYS])}
                for record, status, reason, note in self._ask(connection, "compare_told", asked):
                    reasons[int(record)] = RowReason(status=str(status), reason=reason, note=note)
        return reasons

    def _ask(
        self,
        connection: Connection,
        name: str,
        parameters: Mapping[str, Any],
    ) -> Sequence[Any]:
        log = self._log
        holes = {hole: in_text(sql) for hole, sql in log_holes(log.dialect, log.names).items()}
        # SQLAlchemy makes a parameter for each member of a list, where it is told so.
        lists: list[Any] = [
            bindparam(parameter, expanding=True) for parameter, value in parameters.items() if isinstance(value, list)
        ]
        query = text(statement(log.dialect, name, **holes)).bindparams(*lists)
        return connection.execute(query, parameters).all()
