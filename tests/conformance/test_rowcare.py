"""Row care on every database: looking, holding, releasing, offering again."""

from __future__ import annotations

import re
from itertools import islice

from eventlog.care.listing import Filters, follow, newest
from eventlog.care.rows import EVERYTHING, PROCESSED, Choice, hold, release, requeue
from eventlog.core.backoff import Backoff
from eventlog.core.model import Outcome, Reason, Status
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable
from tests.support.log_rows import LogRows


def offered(log: Log) -> list[int]:
    source = LogRows(log.engine, log.names)
    source.journal.sweep()
    batch = source.read(0)
    return [event.position[0] for event in batch.events]


def settle(log: Log, *outcomes: Outcome, delay: float = 0.0) -> None:
    source = LogRows(log.engine, log.names, settings=LogSettings(backoff=Backoff(first=delay, longest=delay)))
    source.settle(source.read(0), outcomes)


def seen(log: Log, limit: int = 50, **choice: str) -> list[int]:
    return [row.record_id for row in [*newest(log, Filters(**choice), limit=limit, width=10)]]


def test_rows_are_shown_with_their_reasons_the_newest_last(table: LogTable, log: Log) -> None:
    for number in (1, 2, 3, 4, 5):
        table.write(number, f"idu={number}", new_value="x" * 30, perpetrator="me")
    settle(
        log,
        Outcome(position=(1,)),
        Outcome(position=(2,), status=Status.ERROR, reason=Reason.REFUSED, note="no such group"),
        Outcome(position=(3,), status=Status.NEW, reason=Reason.RETRY, note="busy"),
        delay=3600,
    )
    hold(log, [(4, 4)])
    found = [*newest(log, Filters(), limit=50, width=10)]
    assert [(row.record_id, row.status, row.reason, row.note, row.attempts) for row in found] == [
        (1, "S", "published", None, None),
        (2, "E", "refused", "no such group", None),
        (3, "N", "retry", "busy", 1),
        (4, "N", "held", noted(log)[3], None),
        (5, "N", None, None, None),
    ]
    assert found[2].next_attempt is not None
    first = found[0]
    assert (first.event_type, first.event_time, first.perpetrator) == ("1", "2025-03-23 10:57:19", "me")
    assert (first.table_name, first.table_key, first.column_name) == ("usr", "idu=1", "fname")
    assert (first.old_value, first.new_value) == (None, "x" * 10)


def test_rows_are_chosen_by_letter_reason_and_table(table: LogTable, log: Log) -> None:
    for number, status, name in [(1, "S", "usr"), (2, "E", "USR"), (3, "X", "grp"), (4, "N", "usr"), (5, "F", "grp")]:
        table.write(number, f"idu={number}", status=status, table_name=name)
    hold(log, [(4, 4)])
    assert (seen(log), seen(log, limit=2)) == ([1, 2, 3, 4, 5], [4, 5])
    assert (seen(log, statuses="EF"), seen(log, statuses="X"), seen(log, table="Usr")) == ([2, 5], [3], [1, 2, 4])
    assert (seen(log, reason="held"), seen(log, reason="published", table="usr")) == ([4], [1])
    assert seen(log, statuses="E", table="grp") == []


def test_following_tells_what_comes_and_what_changes(table: LogTable, log: Log) -> None:
    table.write_all([2000, 2001])
    pauses: list[float] = []

    def meanwhile(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            settle(log, Outcome(position=(2001,)))
            table.write(2002)
            table.write(1500)  # drawn before, committed late

    told = islice(follow(log, Filters(), limit=10, width=10, pause=meanwhile), 5)
    assert [(row.record_id, row.status) for row in told] == [
        (2000, "N"),
        (2001, "N"),
        (1500, "N"),
        (2001, "S"),
        (2002, "N"),
    ]
    assert all(seconds >= 1 for seconds in pauses)


def test_held_rows_are_not_offered_until_they_are_released(table: LogTable, log: Log) -> None:
    for number in range(1, 7):
        table.write(number, f"idu={number}", status="S" if number == 6 else "N")
    assert hold(log, [(2, 3), (5, 9)]).rows == 3
    assert hold(log, [(2, 2)]).rows == 1
    assert table.statuses()[2] == "N"
    assert offered(log) == [1, 4]
    assert release(log, [(3, 4)]) == 1
    assert release(log, [(3, 4)]) == 0
    assert release(log, [EVERYTHING]) == 2
    assert sorted(offered(log)) == [1, 2, 3, 4, 5]


def test_who_holds_a_row_since_when_and_why_is_noted_until_it_is_released(table: LogTable, log: Log) -> None:
    table.write_all([1, 2])
    hold(log, [(1, 2)], by="ann", why="ask first")
    hold(log, [(1, 1)], by="bob")
    assert re.fullmatch(r"held since [-0-9]{10} [:0-9]{8} UTC by ann: ask first", noted(log)[0] or "")
    assert release(log, [(1, 1)]) == 1
    assert (noted(log)[0], noted(log)[1] is None) == (None, False)
    settle(log, Outcome(position=(1,)))
    assert table.statuses() == {1: "S", 2: "N"}


def noted(log: Log) -> list[str | None]:
    return [row.note for row in [*newest(log, Filters(), limit=9, width=9)]]


def test_requeued_rows_wait_as_if_they_had_never_been_read(table: LogTable, log: Log) -> None:
    for number in range(1, 6):
        table.write(number, f"idu={number}", table_name="usr" if number < 4 else "grp")
    refused = {"status": Status.ERROR, "reason": Reason.REFUSED, "note": "no"}
    settle(log, Outcome(position=(1,)), *(Outcome(position=(number,), **refused) for number in (2, 3, 4)))  # type: ignore[arg-type]  # one value of each kind
    table.run("UPDATE event_log SET status = 'X' WHERE record_id = 5")
    assert requeue(log, [EVERYTHING], Choice(statuses="E", table="USR")) == 2
    assert table.statuses() == {1: "S", 2: "N", 3: "N", 4: "E", 5: "X"}
    assert set(table.outcomes()) == {4}
    assert requeue(log, [(1, 5)], Choice(statuses=PROCESSED)) == 2
    assert table.statuses() == {1: "N", 2: "N", 3: "N", 4: "N", 5: "X"}
    assert table.outcomes() == {}
    assert offered(log) == [1, 2, 3, 4]
