"""From queue rows to images of what was committed, in the order of the commits.

Does no I/O and reads no clock.

Rows come in the order of SYSLOG_ADDR; those of one operation are looked at together when its
transaction ends, so that a row which is missing has until then to come.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final

from msgspec.structs import replace

from eventlog.core.errors import DataError
from eventlog.core.model import Image, Transaction
from eventlog.core.schema import Catalog
from eventlog.sources.linter.operations import Action, reading
from eventlog.sources.linter.rows import QueueRow, address, utc_reader
from eventlog.sources.linter.settings import ReadingSettings
from eventlog.sources.linter.tables import SourceTables
from eventlog.sources.linter.telling import QueueImages
from eventlog.sources.stream.transactions import SpillFactory, Transactions

Report = Callable[[str], None]
FAR: Final = dt.timedelta(hours=1)
"""How far back a later commit's time may lie before it is reported.

Log files' numbers might be used again.
"""

ROW_BYTES: Final = 600
"""Bytes that a queue row takes in memory beside its DATA."""

_COMMIT, _ROLLBACK, _END = Action.COMMIT, Action.ROLLBACK, Action.END


class CommittedRows:
    """Reads a queue's rows; transactions that have not ended wait here, in the spill if they are
    too many for memory.

    What ended before the place `begin` was handed out formerly. `lose` hears of rows that are left
    out although they may say something, and of how many.
    """

    def __init__(
        self,
        schema: Catalog | None,
        settings: ReadingSettings,
        report: Report = lambda _: None,
        spill: SpillFactory[QueueRow] | None = None,
        lose: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.tables = SourceTables(schema, settings)
        self.begin = 0
        self.empty: dict[int, int] = {}
        """Where transactions ended that were rolled back or had nothing in them, by their numbers."""
        self._settings = settings
        self._report = report
        self._lose = lose
        self._utc = utc_reader(settings.zone)
        self._action = reading(settings.coding, report)
        self._open: Transactions[QueueRow] = Transactions(spill, settings.spill_bytes, report=report, announced=False)
        self._queue_images = QueueImages(self.tables, self._action, self._utc, settings)
        self._nodes: dict[str, int] = {}
        self._disordered: set[int] = set()
        self._unknown: set[int] = set()
        self._latest = dt.datetime.min

    @property
    def catalog(self) -> Catalog:
        """Return the catalog as of the images handed out so far."""
        return self.tables.catalog

    @property
    def pending(self) -> int:
        """Count the open transactions."""
        return len(self._open)

    def close(self) -> None:
        """Forgets the transactions that have not ended."""
        self._open.close()

    def images(self, rows: Iterable[QueueRow]) -> Iterator[Image]:
        """Yield the images of transactions ended by these rows."""
        return chain.from_iterable(self.transactions(rows))

    def transactions(self, rows: Iterable[QueueRow]) -> Iterator[Iterator[Image]]:
        """Yield the images of each transaction ended by these rows, made on demand."""
        action_of, nodes, wanted = self._action, self._nodes, self._settings.destination
        held, reached = self._open, -1
        for row in rows:
            node = nodes.get(row.dbnode)
            if node is None:
                node = nodes[row.dbnode] = len(nodes)
            # Two nodes may give one number to their transactions; of a single node it stays as it is.
            tx = node << 64 | row.transact_id
            action = None
            # 1 to 3 are operations on rows in either coding (linter-dispatch-queue.md 2), and
            # nearly all there is.
            if not 0 < row.typ < 4:
                action = action_of(row)
                if action is None:
                    self._skip(row)
                    continue
            if action is _COMMIT or action is _ROLLBACK or action is _END:
                ended = self._end_transaction(tx, row, action)
                if ended is not None:
                    yield ended
            # Ends are taken whatever their destination says: whether a COMMIT has one is not
            # documented.
            elif not wanted or row.dst_server == wanted:
                addr = row.syslog_addr
                # The queue's order is not the log's; sorted when the transaction ends.
                if addr < reached:
                    self._disordered.add(tx)
                held.add(tx, addr, row, len(row.data) + ROW_BYTES)
                reached = addr

    def _end_transaction(self, tx: int, row: QueueRow, action: Action) -> Iterator[Image] | None:
        """Return the images of a transaction that ends; None if it has none."""
        addr = row.syslog_addr
        if row.typ == 4 and (row.len1 or row.len2 or row.blobatr):
            raise DataError(
                f"TYP 4 at {address(addr)} has a row or a BLOB, which a COMMIT has not: coding"
                f" {self._settings.coding!r} may be the wrong one.",
                hint='With coding = "list" it is DELETE BLOB; "auto" tells the two apart row by row.',
            )
        if row.len1 or row.len2:
            ignored = f"{row.len1} + {row.len2} bytes, which are ignored"
            self._report(f"{action} at {address(addr)} comes with {ignored}.")
        if tx not in self._open:  # nobody did anything in it
            self.empty[row.transact_id] = addr
            return None
        fault = None
        if action is _END:
            # What an end without an outcome is taken as, and the fault that its images get.
            chosen = self._settings.unknown_end
            if chosen == "commit":
                action, fault = _COMMIT, None
            elif chosen == "rollback":
                action, fault = _ROLLBACK, None
            else:
                # Nothing is applied unless somebody said so: a fault is seen, and is no change.
                where = address(row.syslog_addr)
                problem = f"TYP {row.typ} does not say how"
                self._report(f"Transaction {row.transact_id} ends at {where}, and {problem}.")
                action = _COMMIT
                fault = f"Its transaction ended with TYP {row.typ}, which does not say how; see unknown_end."
        # What ended before that was handed out formerly.
        if action is _ROLLBACK or addr < self.begin:
            if action is _ROLLBACK:
                self.empty[row.transact_id] = addr
            self._open.rollback(tx)
            self._disordered.discard(tx)
            return None
        transaction = Transaction(id=row.transact_id, time=self._find_commit_time(row), end=row.syslog_addr)
        rows = self._open.commit(tx, addr)
        if tx in self._disordered:
            self._disordered.discard(tx)
            rows = iter(sorted(rows, key=lambda held: (held.syslog_addr, held.extdata)))
        return _last_marked(self._queue_images.images(rows, addr, transaction, fault))

    def _find_commit_time(self, row: QueueRow) -> dt.datetime | None:
        """Read the commit time; report a time before the last one: addresses may have restarted."""
        try:
            time = self._utc(row.oper_date)
        except DataError as error:
            self._report(f"The COMMIT at {address(row.syslog_addr)} has no time: {error}")
            return None
        if self._latest - time > FAR:
            # Once for each time it runs back, not for every commit behind it.
            where = address(row.syslog_addr)
            self._report(
                f"The COMMIT at {where} is of {time} and an earlier one of {self._latest}:"
                " OPER_DATE runs against SYSLOG_ADDR; the numbers of log files may have been used again."
            )
            self._latest = time
        self._latest = max(self._latest, time)
        return time

    def _skip(self, row: QueueRow) -> None:
        self._lose(1)
        if row.typ not in self._unknown:
            self._unknown.add(row.typ)
            where = address(row.syslog_addr)
            self._report(
                f"TYP {row.typ} at {where} is not known to coding {self._settings.coding}; such rows are skipped."
            )


def _last_marked(images: Iterator[Image]) -> Iterator[Image]:
    """Mark the last image of a transaction that has any."""
    held = next(images)
    for image in images:
        yield held
        held = image
    yield replace(held, last=True)
