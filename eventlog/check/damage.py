"""What somebody has done to the journal's tables by hand: each fault in a sentence that names it,
with what mends it.

`read_journal` reads the tables as they are written, and `damages` is a pure function over that.
What a publisher meets of it first is reported in the same words, as DataError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.model import Reason, Status
from eventlog.core.plural import count_words
from eventlog.publisher.tables import CONVERSION_PLAN, JournalRow, OnTheWay, read_ranges
from eventlog.sources.marks import RowRanges
from eventlog.sql.log import Log, id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

PIECE_ROWS: Final = 10_000
"""So many rows of batches are asked for at once."""

BY_ITSELF: Final = "Nothing has to be done: a publisher that runs forgets them by itself."


class Damage(Struct, frozen=True, kw_only=True):
    """One fault. With a serious one the publisher stops, or rows wait for ever."""

    said: str
    mend: str
    serious: bool = True


class JournalReading(Struct, frozen=True, kw_only=True):
    """The journal's tables as they are written. `tables` are their names, and `settled` the rows of
    batches that wait no longer; of tables with a row for each row of the log it has counts, with
    the first one.
    """

    tables: Mapping[str, str]
    outputs: Sequence[Sequence[Any]] = ()
    batches: Sequence[Sequence[Any]] = ()
    planned: Sequence[Sequence[Any]] = ()
    parked: Sequence[tuple[str, int, int]] = ()
    said: Sequence[tuple[str, int, int]] = ()
    words: Sequence[tuple[str, str, int]] = ()
    parked_finished: Sequence[tuple[str, int, int]] = ()
    held_finished: tuple[int | None, int] = (None, 0)
    settled: RowRanges = RowRanges()


def read_journal(connection: Connection, log: Log) -> JournalReading:
    """Read the tables and look up each waiting or sealed row: for people, not for every cycle."""

    def ask(query: str, **values: Any) -> list[tuple[Any, ...]]:
        return log.rows(connection, log.query(query), values)

    batches = ask("batches_read")
    readable: list[RowRanges] = []
    for _, records, *_ in batches:
        with suppress(DataError):  # which is reported elsewhere
            readable.append(read_ranges(records, ""))
    sealed = RowRanges.union(readable)
    numbers, settled = [*sealed], RowRanges()
    for start in range(0, len(numbers), PIECE_ROWS):
        piece = numbers[start : start + PIECE_ROWS]
        waiting = RowRanges.of(int(number) for (number,) in ask("still_waiting", ids=id_list(piece)))
        settled |= RowRanges.of(piece) - waiting
    return JournalReading(
        tables=log.names.journal,
        outputs=ask("outputs_read"),
        batches=batches,
        planned=ask("planned_all"),
        parked=[(str(output), int(rows), int(first)) for output, rows, first in ask("parked_outputs")],
        said=[(str(output), int(rows), int(first)) for output, rows, first in ask("answer_outputs")],
        words=[(str(status), str(reason), int(first)) for status, reason, first in ask("answer_words")],
        parked_finished=[(str(output), int(first), int(rows)) for output, first, rows in ask("parked_finished")],
        held_finished=ask("hold_settled")[0],
        settled=settled,
    )


def damages(reading: JournalReading) -> Iterator[Damage]:
    """Yield every fault of the tables."""
    yield from _unreadable(reading)
    yield from _outputs(reading)
    yield from _find_finished_parked_rows(reading)


def _unreadable(reading: JournalReading) -> Iterator[Damage]:
    """Yield columns no publisher can read."""
    for row in reading.outputs:
        yield from _damage_if_unreadable(JournalRow.read, row)
    for number, records, _ in reading.batches:
        yield from _damage_if_unreadable(read_ranges, records, f"records of batch {number}")
    for _, plan, place, records, details, objects, covers, _ in reading.planned:
        yield from _damage_if_unreadable(read_ranges, records, f"records of plan {plan}")
        # A body and a route are any text, so there is nothing to read in them.
        yield from _damage_if_unreadable(OnTheWay.read, (plan, place, details, objects, covers, None, None, 0, 0))
    for status, reason, first in reading.words:
        if status not in set(Status) or reason not in set(Reason):
            yield Damage(
                said=f"{reading.tables['answers']} says of row {first} that it ends as {status!r} with the reason"
                f" {reason!r}, which no publisher writes.",
                mend="Set status and reason to what another row has, or delete the row there.",
            )


def _damage_if_unreadable(read: Callable[..., object], *given: Any) -> Iterator[Damage]:
    """Yield the damage of an unreadable entry."""
    try:
        read(*given)
    except DataError as error:
        yield Damage(said=error.message, mend=error.hint or "")


def _outputs(reading: JournalReading) -> Iterator[Damage]:
    """Yield impossible positions, and rows of missing outputs."""
    table = reading.tables["outputs"]
    known = {str(row[0]): row for row in reading.outputs}
    newest = max((int(row[0]) for row in reading.batches), default=None)
    for name, position, _, plan, _, _, _, found, _, restored in reading.outputs:
        if found:
            yield Damage(said=f"{name}: {found}", mend=_go_on(str(name), restored), serious=False)
        # A position that is no number was reported already.
        if newest is not None and str(position).lstrip("-").isdecimal() and int(position) > newest:
            yield Damage(
                said=f"{table} has the output {name} at batch {position}, and {newest} is the newest that there is:"
                f" {name} never gets what is sealed up to {position}.",
                mend=f"Stop the publisher and set the position to {newest}, or to that of a backup."
                " It is right only if all rows of later batches were deleted from the log.",
                serious=False,
            )
        open_plans = {str(planned[1]) for planned in reading.planned if planned[0] == name and int(planned[7])}
        for other in sorted(open_plans - {plan}):
            yield Damage(
                said=f"{reading.tables['planned']} has the plan {other} of {name}, and {table} says that"
                f" {plan or 'none'} was its last one.",
                mend=f"Stop the publisher and set the column plan of {name} to {other}, or restore both tables.",
            )
    places = {"planned": {str(row[0]): 0 for row in reading.planned}, "parked": {}, "answers": {}}
    places["parked"] |= {output: rows for output, rows, _ in reading.parked}
    places["answers"] |= {output: rows for output, rows, _ in reading.said}
    for hole, outputs in places.items():
        for name in sorted(outputs.keys() - known.keys()):
            if hole == "answers" and (name == "-" or name.startswith("convert ")):
                # How rows had ended that are sent again; or a conversion has written it, and is over.
                # The output that lacks these rows will end them.
                continue
            rows = count_words(outputs[name], "row") if outputs[name] else "Plans"
            yield Damage(
                said=f"{rows} in {reading.tables[hole]} {'is' if outputs[name] == 1 else 'are'} for the output {name},"
                f" which {table} does not have: the rows behind them never get a letter.",
                mend=f"Restore the row of {name} in {table}; or stop the publisher and delete what is there for it.",
            )
    for name, row in sorted(known.items()):
        if str(row[3] or "").startswith(CONVERSION_PLAN):
            yield Damage(
                said=f"A conversion has not marked its rows, and no new rows are published until then: {name}.",
                mend="If it was interrupted, give its command once more; or give its rows back:"
                f" `eventlog outputs forget {name!r}`.",
                serious=False,
            )


def _go_on(name: str, restored: int | None) -> str:
    """Explain how an output continues after a restore left it in disagreement with its target."""
    resume = f"`eventlog outputs resume {name!r}`"
    if restored is None:
        return f"`eventlog verify` shows what differs; {resume} ends this warning."
    return (
        "`eventlog log --reason restored` lists rows that wait, and `eventlog verify` shows what differs."
        f" `eventlog outputs skip {name!r} ROWS` gives up what the target has; {resume} publishes the others,"
        " which may come a second time."
    )


def _find_finished_parked_rows(reading: JournalReading) -> Iterator[Damage]:
    """Yield rows the journal waits for although the log does not."""
    for output, first, rows in reading.parked_finished:
        yield _describe_gone_rows(
            f"{reading.tables['parked']} has {count_words(rows, 'row')} waiting for {output}", rows, first
        )
    if reading.settled:
        rows, first = len(reading.settled), reading.settled.parts[0][0]
        yield _describe_gone_rows(
            f"{reading.tables['batches']} has {count_words(rows, 'row')} to be published", rows, first
        )
    held_first, held = reading.held_finished
    if held_first is not None:
        yield _describe_gone_rows(
            f"{reading.tables['holds']} holds {count_words(int(held), 'row')}", int(held), int(held_first)
        )


def _describe_gone_rows(where: str, rows: int, first: int) -> Damage:
    which = f"row {first}" if rows == 1 else f"row {first} first"
    return Damage(
        said=f"{where} that the log does not have, or that has a letter there: {which}.", mend=BY_ITSELF, serious=False
    )
