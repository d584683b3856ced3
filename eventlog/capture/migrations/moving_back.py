"""From the journal back to marks, where marks can say it: outputs that lack more than others lag
behind those.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from msgspec import Struct

from eventlog.capture.migrations.former_marks import (
    FormerCounted,
    FormerLag,
    FormerOutcome,
    as_json,
    read_as,
    runs_of,
)
from eventlog.capture.migrations.moving import (
    opened,
    outcomes_table,
    still_waiting,
    tables_of,
    take_lock,
)
from eventlog.core.counting import total_of
from eventlog.core.errors import InstallError
from eventlog.core.model import Count, Reason, Status
from eventlog.core.plural import counted
from eventlog.sql.log import Log
from eventlog.sql.names import MOVED_PLAN, LogNames

SHOWN_ROWS: Final = 3

Run = tuple[int, int]


class JournalOutput(Struct, kw_only=True):
    """One output: the rows that it lacks, of those that others may have, and of these the ones that
    were offered before.
    """

    name: str
    position: int
    paused: str | None
    published: Mapping[int, int]
    lacks: set[int]
    tries: dict[int, tuple[int, int]]


def move_down(connection: sa.Connection, names: LogNames) -> None:
    """Moves what the journal says into marks, in the caller's transaction.

    InstallError where marks cannot say it.
    """
    log = opened(connection, names)
    take_lock(connection, log)
    tables = tables_of(log)
    outputs = _read(connection, tables)
    in_step = _in_step(outputs)
    for output in outputs:
        output.lacks = still_waiting(connection, log, output.lacks)
    connection.execute(log.query("mark_clear"), {"name": "in hand"})
    for name, text in _marks(outputs, in_step).items():
        connection.execute(log.query("mark_write"), {"name": name, "value": text or None})
    _write_retried(connection, log, [output for output in outputs if output.name in in_step])
    _write_holds(connection, log, tables["holds"])
    _write_outcomes(connection, log, tables["said"], outputs)
    for table in tables.values():
        connection.execute(table.delete())


def _read(connection: sa.Connection, tables: Mapping[str, sa.Table]) -> list[JournalOutput]:
    there = tables["outputs"]
    outputs = [
        JournalOutput(
            name=str(row.name),
            position=int(row.position),
            paused=row.paused,
            published=_totals(read_as(row.told, dict[int, Count], {})),
            lacks=set(),
            tries={},
        )
        for row in connection.execute(sa.select(there).order_by(there.c.name))
    ]
    known = {output.name: output for output in outputs}
    for row in connection.execute(sa.select(tables["planned"])):
        if row.plan != MOVED_PLAN:
            # A former version would make other documents of these rows, and send both.
            planned = f"Documents that were planned for the output {row.output} may be there"
            raise InstallError(
                f"{planned}; the output has not been asked yet.",
                hint="Let this version publish until it rests, stop it, and go back then.",
            )
        output, listed = known[str(row.output)], _numbers(row.records)
        output.lacks |= listed
        if row.attempts:
            output.tries |= dict.fromkeys(listed, (int(row.attempts), int(row.due)))
    parked = tables["parked"].c
    query = sa.select(parked.output, parked.record_id, parked.reason, parked.attempts, parked.due)
    for name, number, reason, attempts, due in connection.execute(query):
        known[str(name)].lacks.add(int(number))
        if reason == Reason.RETRY.value:
            known[str(name)].tries[int(number)] = (int(attempts), int(due or 0))
    batches = tables["batches"].c
    for row in connection.execute(sa.select(batches.id, batches.records)):
        for output in outputs:
            if output.position < int(row.id):
                output.lacks |= _numbers(row.records)
    return outputs


def _numbers(text: str) -> set[int]:
    runs = msgspec.json.decode(text, type=list[Run])
    return {number for first, last in runs for number in range(first, last + 1)}


def _in_step(outputs: Sequence[JournalOutput]) -> set[str]:
    """The outputs that lack least; InstallError where another one has a row that these lack."""
    if not outputs:
        return set()
    # By the name where several lack as few, so that it is the same one each time.
    least = min(outputs, key=lambda output: (len(output.lacks), output.name))
    for output in outputs:
        if more := sorted(least.lacks - output.lacks):
            rows = ", ".join(map(str, more[:SHOWN_ROWS]))
            if len(more) > SHOWN_ROWS:
                rows += ", …"
            wait = f"{counted(len(more), 'row')} ({rows}) wait{'s' * (len(more) == 1)}"
            conflict = f"{wait} for {least.name} that {output.name} has, and other rows for {output.name}"
            way_out = "Let this version publish until one of them lacks nothing that the other one has"
            raise InstallError(
                f"{conflict}: a version without journal cannot say that.",
                hint=f"{way_out}, or forget an output.",
            )
    return {output.name for output in outputs if output.lacks == least.lacks}


def _totals(counts: Mapping[int, Count]) -> dict[int, int]:
    """Marks know of no counts by tables."""
    return {transaction: total_of(count) for transaction, count in counts.items()}


def _marks(outputs: Sequence[JournalOutput], in_step: set[str]) -> dict[str, str]:
    # All that are in step lack the same rows.
    base = next((output.lacks for output in outputs if output.name in in_step), set[int]())
    marks = {f"paused: {output.name}": output.paused for output in outputs if output.paused is not None}
    published = {output.name: output.published for output in outputs if output.published and output.name in in_step}
    if published:
        marks["note: counted"] = as_json(FormerCounted(told=published))
    for output in outputs:
        if output.name in in_step:
            continue
        owed = output.lacks - base
        notes = {}
        if output.published:
            notes["counted"] = as_json(FormerCounted(told={output.name: output.published}))
        attempts = {number: count for number, (count, _) in output.tries.items() if number in owed}
        lag = FormerLag(notes=notes, attempts=attempts, waited=True)
        marks[f"owed: {output.name}"] = _text(owed)
        marks[f"lagging: {output.name}"] = as_json(lag)
    return marks


def _text(numbers: set[int]) -> str:
    runs = []
    for first, last in runs_of(numbers):
        runs.append(str(first) if first == last else f"{first}..{last}")
    return ",".join(runs)


def _write_retried(connection: sa.Connection, log: Log, in_step: Sequence[JournalOutput]) -> None:
    """Rows that all who are in step are offered again, as often as one of them was and when the
    last one may be.
    """
    tries: dict[int, tuple[int, int]] = {}
    for output in in_step:
        for number, (count, due) in output.tries.items():
            if number in output.lacks:
                former = tries.get(number, (0, 0))
                tries[number] = (max(former[0], count), max(former[1], due))
    if not tries:
        return
    rows = [
        {
            "record_id": number,
            "status": Status.NEW.value,
            "reason": Reason.RETRY.value,
            "attempts": count,
            "next_attempt": dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=due),
            "held": 0,
        }
        for number, (count, due) in sorted(tries.items())
    ]
    _record(connection, log, rows)
    connection.execute(log.query("mark_write"), {"name": "retried", "value": _text(set(tries))})


def _write_holds(connection: sa.Connection, log: Log, holds: sa.Table) -> None:
    query = sa.select(holds.c.record_id, holds.c.note)
    notes = {int(number): note for number, note in connection.execute(query)}
    held = still_waiting(connection, log, set(notes))
    if not held:
        return
    outcomes = outcomes_table(log)
    rows: list[dict[str, Any]] = []
    for number in sorted(held):
        is_offered = sa.and_(outcomes.c.record_id == number, outcomes.c.status == Status.NEW.value)
        there = outcomes.update().where(is_offered)
        if connection.execute(there.values(held=1, note=notes[number])).rowcount:
            continue  # it is offered again besides
        row = {
            "record_id": number,
            "status": Status.NEW.value,
            "reason": Reason.HELD.value,
            "note": notes[number],
            "attempts": 0,
            "held": 1,
        }
        rows.append(row)
    _record(connection, log, rows)
    connection.execute(log.query("mark_write"), {"name": "held", "value": _text(held)})


def _record(connection: sa.Connection, log: Log, rows: Sequence[Mapping[str, Any]]) -> None:
    """Enters what is known of rows that wait.

    They may have a record from before they were set back.
    """
    outcomes = outcomes_table(log)
    for row in rows:
        connection.execute(outcomes.delete().where(outcomes.c.record_id == row["record_id"]))
        connection.execute(outcomes.insert().values(**row))


def _write_outcomes(
    connection: sa.Connection,
    log: Log,
    table: sa.Table,
    outputs: Sequence[JournalOutput],
) -> None:
    """The outcomes at outputs that are ahead.

    That policies left a row out only where all of them say so.
    """
    by_outcome: dict[tuple[Status, Reason, str | None], set[int]] = {}
    filtered: dict[int, list[tuple[Status, Reason, str | None]]] = {}
    query = sa.select(table.c.record_id, table.c.status, table.c.reason, table.c.note)
    for number, status, reason, note in connection.execute(query):
        what = (Status(status), Reason(reason), note)
        if what[1] is Reason.FILTERED:
            filtered.setdefault(int(number), []).append(what)
        else:
            by_outcome.setdefault(what, set()).add(int(number))
    # Those who lack the row have no outcome of it.
    for number, several in filtered.items():
        if len(several) == sum(number not in output.lacks for output in outputs):
            by_outcome.setdefault(several[0], set()).add(number)
    if by_outcome:
        text = as_json([FormerOutcome(*what, _text(numbers)) for what, numbers in by_outcome.items()])
        connection.execute(log.query("mark_write"), {"name": "said", "value": text})
