"""Row care: rows are held and released, and offered again.

Of a waiting row nothing changes but that it is held or not: the publisher alone decides what
becomes of it. Each transaction has at most 10,000 rows, and is tried again where somebody else's
lock has stopped it; a command that was broken off goes on when it is given again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from time import time
from typing import Any, Final, TypeVar, cast

from msgspec import Struct
from sqlalchemy import Connection

from eventlog.care import journal as care
from eventlog.care.ages import seconds_of, utc_text
from eventlog.care.journal import CaredJournal
from eventlog.core.errors import SourceError, UsageError, shorten
from eventlog.core.model import Status
from eventlog.core.suggest import nearest
from eventlog.sources.marks import RowRanges, Run
from eventlog.sql.access import is_held_up
from eventlog.sql.log import Log, id_list

TRIES: Final = 3

Work = TypeVar("Work", bound=Callable[..., Any])


def retry_in_transaction(work: Work) -> Work:
    """Retry a function of one transaction, with the log as its first argument."""

    # A transaction that was stopped has left nothing, and each try has waited as long as its
    # session may.
    @wraps(work)
    def again(log: Log, *given: Any, **named: Any) -> Any:
        for _ in range(TRIES - 1):
            try:
                return work(log, *given, **named)
            except SourceError as error:
                if not was_stopped_by_lock(log, error):
                    raise
        return work(log, *given, **named)

    return cast("Work", again)


def was_stopped_by_lock(log: Log, error: SourceError) -> bool:
    """Return True if another session's lock stopped a statement."""
    return is_held_up(log.dialect, error.__cause__)


EVERYTHING: Final[Run] = (-(2**63), 2**63 - 1)
PROCESSED: Final = "".join(status for status in Status if status is not Status.NEW)
"""The statuses of rows that the publisher has done with."""

MOST_STATUS_CHARACTERS: Final = 5
"""As many statuses as a query of care.sql takes."""

HELD_SINCE: Final = "held since "
"""Begins the note of a row that somebody holds, and not of one that waits behind another."""

NOTE_CHARACTERS: Final = 1000
"""Characters of what somebody says about a hold."""

OLDEST_SECONDS: Final = 1_000 * 365 * 86_400
"""Seconds that an age may have: databases have no times much further back."""

# 18 digits, so that every such number fits into 64 bits.
_run = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?").fullmatch


class Choice(Struct, frozen=True, kw_only=True):
    """Which rows are meant: their statuses (none: all), their reason, and their table in whatever
    case.
    """

    statuses: str = ""
    reason: str = ""
    table: str = ""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the queries of care.sql."""
        # The query has five places: fewer statuses are repeated until all are filled.
        statuses = (self.statuses or "?") * MOST_STATUS_CHARACTERS
        return {
            **{f"status_{index + 1}": statuses[index] for index in range(MOST_STATUS_CHARACTERS)},
            "any_status": int(not self.statuses),
            "any_table": int(not self.table),
            "named": self.table,
            "any_reason": int(not self.reason),
            "reason": self.reason,
        }


class LogRow(Struct, frozen=True, kw_only=True):
    """One row of the log and what was recorded about it. Values are as long as was asked for."""

    record_id: int
    status: str | None
    event_type: str | None
    event_time: str | None
    perpetrator: str | None
    table_name: str | None
    table_key: str | None
    column_name: str | None
    old_value: str | None
    new_value: str | None
    reason: str | None
    note: str | None
    attempts: int | None
    next_attempt: str | None
    context: str | None = None


def read_runs_of_ids(texts: Iterable[str]) -> list[Run]:
    """Reads `5` and `7-9`; the runs come in order and do not overlap.

    UsageError names what is neither.
    """
    runs: list[Run] = []
    for text in texts:
        match = _run(text)
        if match is None:
            example = "write numbers and ranges, such as 5 7-9"
            raise UsageError(f"{shorten(text)!r} is no record_id; {example}.")
        if int(match[1]) > int(match[2] or match[1]):
            raise UsageError(f"The range {shorten(text)} runs backwards; write {match[2]}-{match[1]}.")
        runs.append((int(match[1]), int(match[2] or match[1])))
    return [*RowRanges(runs).parts]


def read_age(text: str) -> int:
    """Reads `30d`, `12h`, `90m`, `45s` or `2w` as seconds; UsageError for anything else."""
    age = seconds_of(text)
    if age is None:
        example = "write a number with s, m, h, d or w, such as 30d"
        raise UsageError(f"{shorten(text)!r} is no age; {example}.")
    if age > OLDEST_SECONDS:
        what = f"{shorten(text)!r} is further back than databases count"
        raise UsageError(f"{what}; write an age up to 1000 years.")
    return age


def table_meant(log: Log, table: str) -> tuple[str, str | None]:
    """Find the log's name for a table, and the message if there is none.

    The table may be named without its schema; raise UsageError for a bare name in several schemas.
    """
    # % and _ stand for any status in LIKE; the query says that ! takes that away.
    ending = "%." + re.sub("([!%_])", r"!\1", table)
    known: list[tuple[Any, ...]] = []
    with log.transaction() as connection:
        rows = log.rows(connection, log.query("tables_named"), {"named": table, "ending": ending})
        if not rows:
            known = log.rows(connection, log.query("tables_of_log"))
    # A log of CHAR columns pads its names, and writers may have spelled one table in several ways.
    names = {str(name).strip().casefold(): str(name).strip() for (name,) in rows}
    if not names:
        all_names = {str(name).strip() for (name,) in known if name is not None}
        bare = {name.rpartition(".")[2]: name for name in all_names}
        near = nearest(table, all_names) or bare.get(nearest(table, bare) or "")
        way_out = f"Did you mean {near}?" if near else "`eventlog triggers` lists what is tracked."
        return table, f"No row of the log is about {shorten(table)}. {way_out}"
    if len(names) > 1 and table.casefold() not in names:
        raise UsageError(f"{table} may mean {' or '.join(sorted(names.values()))}; say which.")
    return names.get(table.casefold()) or next(iter(names.values())), None


class HeldRows(Struct, frozen=True, kw_only=True):
    """How many rows are held, and the outputs that are being given some of them now."""

    rows: int
    late: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Write the message about outputs that do not wait; empty if all do."""
        if not self.late:
            return ""
        return f"{', '.join(self.late)}: a row of these is being delivered, and is not kept from there."


SHOWN_ROWS: Final = 3
"""Of so many numbers or ranges is said why nothing became of them."""


def describe_states(log: Log, runs: Sequence[Run]) -> str:
    """Describe rows that could not be changed: missing, waiting, or with a status."""
    states = []
    with log.transaction() as connection:
        for first, last in runs[:SHOWN_ROWS]:
            if first != last:
                states.append(f"{first}-{last} has none")
                continue
            found = log.rows(connection, log.query("row_status"), {"record_id": first})
            if not found:
                states.append(f"there is no row {first} in {log.name}")
            elif str(found[0][0]).strip() == Status.NEW:
                states.append(f"row {first} waits")
            else:
                states.append(f"row {first} has the status {found[0][0]}")
    if len(runs) > SHOWN_ROWS:
        states.append("…")
    return "; ".join(states)


def hold(log: Log, runs: Sequence[Run], *, by: str = "", why: str = "") -> HeldRows:
    """Keeps waiting rows from being published until they are released.

    How many of the runs are held now.

    Later rows of the same objects wait behind them. Rows that an output has planned are being
    delivered there.
    """
    note = write_hold_note(by, why)
    rows, late = 0, set[str]()
    for run in runs:
        for piece in care.pieces(log, "waiting_numbers", run):
            held, outputs = _hold(log, piece, note)
            rows, late = rows + held, late | outputs
    return HeldRows(rows=rows, late=tuple(sorted(late)))


def release(log: Log, runs: Sequence[Run]) -> int:
    """Lets held rows go; says how many."""
    return sum(_release(log, piece) for run in runs for piece in care.pieces(log, "hold_numbers", run))


def requeue(log: Log, runs: Sequence[Run], choice: Choice) -> int:
    """Lets processed rows wait again, as if they had never been read; says how many."""
    values = choice.parameters()
    rows = 0
    for run in runs:
        for piece in care.pieces(log, "requeue_numbers", run, values):
            rows += retry_in_transaction(CaredJournal(log).requeue)(piece, values)
    return rows


def leave_before_deletion(connection: Connection, log: Log, numbers: Sequence[int]) -> None:
    """Remove waiting rows from the journal in the transaction about to delete them.

    Rows with a status are in no table of the journal, so deleting only those needs no call.
    """
    journal = CaredJournal(log).join_transaction(connection)
    journal.take_out([*journal.numbers("still_waiting", ids=id_list(numbers))])


@retry_in_transaction
def _hold(log: Log, run: Run, note: str) -> tuple[int, set[str]]:
    with log.transaction() as connection:
        return care.hold(connection, log, [run], note)


@retry_in_transaction
def _release(log: Log, run: Run) -> int:
    with log.transaction() as connection:
        return care.release(connection, log, [run])


def count_requeued(log: Log, runs: Sequence[Run], choice: Choice) -> int:
    rows = 0
    with log.transaction() as connection:
        for first, last in runs:
            bounds = {"first": first, "last": last}
            rows += int(connection.execute(log.query("count_run"), bounds | choice.parameters()).scalar_one())
    return rows


def write_hold_note(by: str, why: str) -> str:
    """Write the note of a hold: by whom, since when, and why."""
    note = f"{HELD_SINCE}{utc_text(time())} UTC"
    if by:
        note += f" by {by}"
    if not why:
        return f"{note}."
    return f"{note}: {why[:NOTE_CHARACTERS]}"
