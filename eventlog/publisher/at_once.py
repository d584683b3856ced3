"""Enters in the journal by one statement what is plain: a change that comes alone nearly always is.

There the way to the database and back is most of its delay. Law: such a statement does all that the transaction
of `Journal` does, or nothing: then that one is begun, and says why.

One statement is enough. It is a transaction. It locks `holding`, then the lease, as all do, and compares both, `written`
and the history of the tables: if one is not as memory knows it, nothing is written. It writes a new `written`, and any
error of it is a doubt. A plan waits for the disk in it, an end does not. After a doubt no end is entered by it.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from eventlog.publisher.memory import Memory
from eventlog.publisher.plans import Done, TakePlan, give_plan
from eventlog.publisher.tables import JournalRow
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import RowRanges
from eventlog.sql.log import id_list

MOST_ROWS: Final = 64
"""More rows of a plan are marked by the ends of their runs, which takes statements of its own."""


def plan_plainly(memory: Memory, name: str, plan: TakePlan) -> tuple[JournalRow, dict[str, Any]] | None:
    """Return the output's row after a plan, and the statement's values; None if it needs a
    transaction.

    A plan is plain if nothing waits and nobody else publishes: its new rows are all in one row.
    """
    taken = plan.taken
    if taken.sealed is None or len(plan.planned) != 1 or memory.stamp != taken.stamp:
        return None
    if taken.batches or taken.unparked or taken.parked or taken.gone:
        return None
    if plan.again or plan.readable or plan.over or plan.outcomes:
        return None
    if memory.outputs.keys() != {name} or memory.any_parked or memory.batches or memory.planned:
        return None
    [sent], row = plan.planned, memory.outputs[name]
    moved = give_plan(row, plan.plan, sent.records if plan.is_asked else None)
    moved = replace(moved, position=memory.last_batch + 1)
    values = moved.to_columns()
    del values["name"]
    return moved, {**values, **sent.to_columns(name), "history": plan.history}


def finish_plainly(
    memory: Memory, name: str, done: Done, settings: LogSettings
) -> tuple[RowRanges, dict[str, Any]] | None:
    """Return the finished rows and the statement's values; None if that needs a transaction.

    It is plain if all were published and no other output has an answer for them.
    """
    if not done.asked or len(done.planned) != 1 or done.outcomes or done.again or done.gone or done.associations:
        return None
    if done.transactions is not None or done.target_plan is not None or settings.delete_from_log:
        return None
    if memory.outputs.keys() != {name} or memory.any_answers or memory.batches:
        return None
    [sent] = done.planned
    records = sent.records
    if len(records) > MOST_ROWS or memory.planned.get(name) != records or records.parts[0][0] <= memory.last_noted:
        return None
    return records, {"output": name, "plan": sent.plan, "place": sent.place, "ids": id_list([*records])}
