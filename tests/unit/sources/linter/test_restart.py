"""Where reading begins that goes on behind exported rows: as the source's own reader has it."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.sources.linter.dump import FollowedQueue, QueueRestart, dumped
from eventlog.sources.linter.emulator import EmulatedOperation
from eventlog.sources.linter.operations import Action
from eventlog.sources.linter.rows import address
from eventlog.sources.linter.tables import SourceTables
from tests.support.linter import READING, SCHEMA, ended, insert, queued, row


def point(*operations: EmulatedOperation) -> QueueRestart | None:
    restart = FollowedQueue()
    list(dumped(queued(operations), SourceTables(SCHEMA, READING), READING, restart.take))
    return restart.point


def addresses(operations: Sequence[EmulatedOperation]) -> list[int]:
    return [one.syslog_addr for one in queued(operations)]


def test_it_begins_behind_the_last_end_and_says_what_is_open() -> None:
    done = [insert(1, 10), insert(2, 20), ended(1), insert(2, 21), insert(3, 30), ended(3, Action.ROLLBACK)]
    found = point(*done)
    where = addresses(done)
    assert found == QueueRestart(begin=where[-1] + 1, open=1, first=where[1])
    assert found.text == (
        f"A restart begins behind {address(where[-1])} ({where[-1]}), where the last transaction ended;"
        f" 1 open transaction may continue, so the rows from {address(where[1])} ({where[1]}) on are needed."
    )


def test_without_an_open_transaction_and_without_an_end() -> None:
    over = point(insert(1, 10), ended(1))
    assert over is not None
    assert over.text.endswith("where the last transaction ended; none is open.")
    first = point(insert(1, 10), insert(1, 11))
    assert first is not None
    assert (first.begin, first.open) == (0, 1)
    assert first.text.startswith("A restart begins at the beginning: no transaction has ended; 1 open")
    assert point() is None


def test_an_action_that_nobody_knows_says_nothing() -> None:
    restart = FollowedQueue()
    restart.take(row(typ=77), None)
    assert restart.point is None
