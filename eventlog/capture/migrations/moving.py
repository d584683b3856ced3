"""From marks to the journal: each output lacks afterwards what it lacked before, and nothing else.

* A row that every output lacks is left alone: it waits, and is found again like a new one.
* A row that every output has gets its letter.
* Documents that may be at an output become its open plan, without their bodies.
* Other rows are ahead of the outputs that lack them, in batches. What no order of batches can say,
  and rows that were offered before, are listed for an output under a plan that no target has; they
  are parked when the output begins.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from msgspec.structs import replace

from eventlog.capture.log_tables import journal_tables
from eventlog.capture.migrations.former_marks import (
    FormerOutcome,
    FormerOutput,
    OpenDocument,
    as_json,
    former_outputs,
    numbers_in,
    read_as,
    read_marks,
    runs_of,
)
from eventlog.core.errors import InstallError
from eventlog.core.model import SEVERITY, Outcome, Reason, Status
from eventlog.sql.dialect import dialect_of
from eventlog.sql.findlog import log_columns
from eventlog.sql.log import Log, id_list
from eventlog.sql.longtext import bind_long_texts
from eventlog.sql.names import MOVED_PLAN, STANDARD, LogNames

FENCE: Final = "the rows are in the journal"
"""What the mark of the batch in hand says then.

A former version's publisher that still runs cannot read it, and ends.
"""

BATCH_ROWS: Final = 10_000
BATCH_CHARACTERS: Final = 8_000_000
"""So many characters the values of a batch have together at most, unless one row has more."""
LISTED_ROWS: Final = 1_000
"""Rows that one line of a plan lists at most."""
PAGE_ROWS: Final = 20_000
LONGEST_LEASE_SECONDS: Final = 3_601

MOVED_MARKS: Final = ("in hand", "retried", "held", "said", "behind", "unread")
MOVED_KINDS: Final = ("note: ", "owed: ", "lagging: ", "paused: ", "resumed: ")
"""What the names of further marks begin with that are gone after the move."""

Tries = Mapping[int, tuple[int, int]]
"""How often rows were offered, and when they may be again, in milliseconds since 1970."""


def is_moved(connection: sa.Connection, names: LogNames) -> bool:
    """Whether the log knows anything of outputs or rows that has to be moved, up or down."""
    marks = read_marks(connection, names)
    return any(name in MOVED_MARKS or name.startswith(MOVED_KINDS) for name in marks)


def move_up(connection: sa.Connection, names: LogNames) -> None:
    """Moves what the marks say into the tables of the journal, in the caller's transaction."""
    if "holding" not in read_marks(connection, names):
        return  # nobody has ever published this log, nor held a row of it
    log = opened(connection, names)
    # Read again after the lock: a publisher may have written marks until then.
    take_lock(connection, log)
    marks = read_marks(connection, log.names)
    _Move(connection, log, marks).run()
    held = outcomes_table(log)
    query = sa.select(held.c.record_id, held.c.note).where(held.c.held != 0)
    notes = connection.execute(query).all()
    waiting = still_waiting(connection, log, {int(number) for number, _ in notes})
    rows = [{"record_id": number, "note": note} for number, note in notes if int(number) in waiting]
    insert(connection, tables_of(log)["holds"], rows)
    connection.execute(held.delete().where(held.c.status == Status.NEW.value))
    # Of rows that have their letter.
    kept = sa.or_(held.c.held != 0, held.c.next_attempt.isnot(None))
    connection.execute(held.update().where(kept).values(held=0, next_attempt=None))
    for name in marks:
        if name in MOVED_MARKS or name.startswith(MOVED_KINDS):
            connection.execute(log.query("mark_clear"), {"name": name})
    # Last of all, for whoever reads it takes the move for done.
    connection.execute(log.query("mark_write"), {"name": "in hand", "value": FENCE})


def opened(connection: sa.Connection, names: LogNames) -> Log:
    """The log with the columns that it has in this database."""
    if dialect_of(connection).lob_parameters:
        bind_long_texts(connection)
    actual = log_columns(connection, names, "auto" if names.columns == STANDARD else names.columns)
    return Log(connection.engine, actual)


def take_lock(connection: sa.Connection, log: Log) -> None:
    """Keeps publishers away until the caller's transaction ends.

    One that slept meanwhile notices that it has lost the log.

    InstallError while somebody publishes.
    """
    connection.execute(log.query("mark_lock"), {"name": "holding"})
    [(mark, now)] = log.rows(connection, log.query("lock_read"))
    until, clock = _moment(str(mark or "").partition(" ")[0]), _moment(str(now))
    if until is not None and clock is not None:
        longest = clock + dt.timedelta(seconds=LONGEST_LEASE_SECONDS)
        # What ends later than any lease can is none.
        if clock <= until <= longest:
            message = f"A publisher works on the event log {log.name}, or was killed some seconds ago."
            raise InstallError(message, hint="Stop it, and try again.")
    connection.execute(log.query("mark_clear"), {"name": "publisher"})
    connection.execute(log.query("mark_write"), {"name": "holding", "value": secrets.token_hex(8)})


def _moment(text: str) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


def tables_of(log: Log) -> dict[str, sa.Table]:
    """The tables of the journal by what its queries call them."""
    metadata = journal_tables(log.names, log.dialect)
    schema = log.names.schema
    journal = log.names.journal.items()
    return {hole: sa.Table(name, metadata, schema=schema) for hole, name in journal}


def outcomes_table(log: Log) -> sa.TableClause:
    """The table of outcomes, as far as both directions need it."""
    types = log.dialect.types
    columns = (
        sa.column("record_id", types.log_number),
        sa.column("status", sa.CHAR(1)),
        sa.column("reason", sa.String(40)),
        sa.column("note", types.log_value),
        sa.column("attempts", sa.Integer()),
        sa.column("next_attempt", types.log_moment),
        sa.column("held", sa.Integer()),
    )
    return sa.table(log.names.outcomes, *columns, schema=log.names.schema)


def still_waiting(connection: sa.Connection, log: Log, numbers: set[int]) -> set[int]:
    """Those of these rows that wait."""
    ordered, waiting = sorted(numbers), set[int]()
    for start in range(0, len(ordered), PAGE_ROWS):
        asked = {"ids": id_list(ordered[start : start + PAGE_ROWS])}
        rows = log.rows(connection, log.query("still_waiting"), asked)
        waiting.update(int(number) for (number,) in rows)
    return waiting


def insert(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts these rows; nothing where there are none."""
    for start in range(0, len(rows), LISTED_ROWS):
        connection.execute(table.insert(), [dict(row) for row in rows[start : start + LISTED_ROWS]])


class _Move:
    """One way from marks to tables."""

    def __init__(self, connection: sa.Connection, log: Log, marks: Mapping[str, str]) -> None:
        self._connection, self._log = connection, log
        self._tables = tables_of(log)
        self._outputs = former_outputs(marks)
        self._marks = marks
        # Rows that wait for another attempt of the outputs that are in step.
        asked, kept = numbers_in(self._marks.get("retried", "")), outcomes_table(self._log)
        offered = kept.c.next_attempt.isnot(None)
        query = sa.select(kept.c.record_id, kept.c.attempts, kept.c.next_attempt).where(offered)
        self._retried = {}
        # Without such rows the table need not be read at all.
        for number, attempts, moment in self._connection.execute(query) if asked else ():
            if int(number) in asked:
                self._retried[int(number)] = (int(attempts or 0), milliseconds(moment))
        settled = set[int]().union(*(output.owed for output in self._outputs if output.owed is not None))
        known = settled.union(self._retried, *(output.has for output in self._outputs))
        for output in self._outputs:
            for made in output.documents:
                known.update(made.records)
        self._waiting = still_waiting(connection, log, known)
        self._settled = settled & self._waiting
        # Of the rows that are told apart those that an output has not had for certain.
        self._lacks: dict[str, set[int]] = {}
        for output in self._outputs:
            lacked = self._waiting - self._settled
            if output.owed is not None:
                lacked |= output.owed & self._waiting
            self._lacks[output.name] = lacked - output.has

    def run(self) -> None:
        documents = {output.name: _only(output.documents, self._lacks[output.name]) for output in self._outputs}
        tries: dict[str, Tries] = {}
        for output in self._outputs:
            tried = self._retried
            # An output that lags has its own count, and waits for no time.
            if output.owed is not None:
                tried = {number: (count, 0) for number, count in output.attempts.items()}
            lacks = self._lacks[output.name]
            tries[output.name] = {number: counted for number, counted in tried.items() if number in lacks}
        ahead, listed = self._ahead_and_listed(documents, tries)
        positions = self._write_batches(ahead)
        for output in self._outputs:
            self._write_output(output, positions[output.name], documents[output.name])
            rows = [*_open_plans(output.name, documents[output.name])]
            rows += _listed_rows(output.name, listed[output.name], tries[output.name])
            insert(self._connection, self._tables["planned"], rows)
        self._write_outcomes()

    def _ahead_and_listed(
        self, documents: Mapping[str, Sequence[OpenDocument]], tries: Mapping[str, Tries]
    ) -> tuple[list[tuple[frozenset[str], list[int]]], dict[str, list[int]]]:
        """Rows that are ahead, by the outputs that lack them, and for each output the rows that are
        listed.
        """
        listed = {name: [*of_output] for name, of_output in tries.items()}
        free = {name: lacks.difference(tries[name]) for name, lacks in self._lacks.items()}
        for name, made in documents.items():
            planned = {record for document in made for record in document.records}
            free[name] -= planned
            listed[name] = [number for number in listed[name] if number not in planned]
        groups: dict[frozenset[str], list[int]] = {}
        for number in sorted(self._waiting):
            lack = frozenset(name for name, rows in free.items() if number in rows)
            if lack and len(lack) < len(self._outputs):
                groups.setdefault(lack, []).append(number)
        chain = nested(groups)
        for lack, numbers in groups.items():
            # Rows whose outputs no chain has cannot be told apart by how far these are.
            if lack not in chain:
                for name in lack:
                    listed[name].extend(numbers)
        return [(lack, groups[lack]) for lack in chain], listed

    def _write_batches(self, ahead: Sequence[tuple[frozenset[str], list[int]]]) -> dict[str, int]:
        """Makes batches, those first that fewest outputs lack; how far each output is."""
        positions = {output.name: 0 for output in self._outputs}
        rows: list[dict[str, Any]] = []
        for lack, numbers in ahead:
            for part, weight in self._parts(numbers):
                records = as_json(runs_of(part))
                rows.append({"id": len(rows) + 1, "records": records, "weight": weight})
            positions |= {name: len(rows) for name in positions if name not in lack}
        insert(self._connection, self._tables["batches"], rows)
        return positions

    def _parts(self, numbers: Sequence[int]) -> Iterator[tuple[list[int], int]]:
        """Rows in parts that can be read together, each with what its values have."""
        part: list[int] = []
        weight = 0
        for start in range(0, len(numbers), PAGE_ROWS):
            page = numbers[start : start + PAGE_ROWS]
            weights = self._weights(page[0], page[-1])
            for number in page:
                size = weights.get(number, 0)
                if part and (len(part) >= BATCH_ROWS or weight + size > BATCH_CHARACTERS):
                    yield part, weight
                    part, weight = [], 0
                part.append(number)
                weight += size
        if part:
            yield part, weight

    def _weights(self, first: int, last: int) -> dict[int, int]:
        names = self._log.names
        asked = ("record_id", "status", "old_value", "new_value")
        columns = [sa.column(names.column(name), sa.Text()) for name in asked]
        number, status, old, new = columns
        lengths = [sa.func.coalesce(sa.func.length(value), 0) for value in (old, new)]
        log = sa.table(names.table, schema=names.schema)
        # As a literal and not a parameter, or the index of waiting rows would not be used.
        is_new = status == sa.literal_column("'N'")
        query = sa.select(number, lengths[0] + lengths[1]).select_from(log).where(is_new)
        query = query.where(number.between(sa.literal(first), sa.literal(last)))
        return {int(record): int(weight) for record, weight in self._connection.execute(query)}

    def _write_output(
        self,
        output: FormerOutput,
        position: int,
        documents: Sequence[OpenDocument],
    ) -> None:
        row = {
            "name": output.name,
            "position": position,
            "plans": 0,
            "plan": (documents[0].plan if documents else "") or MOVED_PLAN,
            "has": MOVED_PLAN,
            "paused": output.paused,
            "told": as_json(output.published) if output.published else None,
        }
        self._connection.execute(self._tables["outputs"].insert(), row)

    def _write_outcomes(self) -> None:
        """Keeps outcomes of rows that others lack, and writes letters of rows that nobody lacks."""
        lacked = set[int]().union(*self._lacks.values())
        kept: list[dict[str, Any]] = []
        ended: dict[int, list[Outcome]] = {number: [] for number in self._waiting - lacked}
        for (number, name), outcome in sorted(self._outcomes().items()):
            if number in ended:
                ended[number].append(outcome)
            # That a row was published is what every output says that has it.
            elif outcome.reason is not Reason.PUBLISHED or outcome.note:
                if number not in self._waiting:
                    continue
                row = {"record_id": number, "output": name, "status": outcome.status.value}
                kept.append(row | {"reason": outcome.reason.value, "note": _note(outcome)})
        insert(self._connection, self._tables["said"], kept)
        count = len(self._outputs)
        self._give_letters({number: _worst(outcomes, count) for number, outcomes in ended.items()})

    def _outcomes(self) -> dict[tuple[int, str], Outcome]:
        """The outcomes of rows at outputs that have them."""
        outcomes: dict[tuple[int, str], Outcome] = {}
        for output in self._outputs:
            had = output.has - self._lacks[output.name]
            for number, answer in output.outcomes.items():
                if number in had:
                    outcomes[number, output.name] = answer
        for alike in read_as(self._marks.get("said"), list[FormerOutcome], []):
            for number in numbers_in(alike.numbers) & self._settled:
                having = [name for name, lacks in self._lacks.items() if number not in lacks]
                having = having or ["-"]
                outcome = Outcome(
                    position=(number,),
                    status=alike.status,
                    reason=alike.reason,
                    note=alike.note,
                )
                # That policies left it out counts where all say so; of anything else it is enough
                # that one does.
                if alike.reason is not Reason.FILTERED:
                    having = having[:1]
                for name in having:
                    former = outcomes.get((number, name))
                    if former is None or SEVERITY[outcome.status] > SEVERITY[former.status]:
                        outcomes[number, name] = outcome
        return outcomes

    def _give_letters(self, ended: Mapping[int, Outcome]) -> None:
        noted: list[dict[str, Any]] = []
        for number, outcome in sorted(ended.items()):
            if outcome.reason is not Reason.PUBLISHED or outcome.note:
                entry = {"id": number, "status": outcome.status.value, "reason": outcome.reason.value}
                note = _note(outcome)
                if note is not None:
                    entry["note"] = note
                noted.append(entry)
        if noted:
            self._connection.execute(self._log.query("note_outcome"), {"records": as_json(noted)})
        for status in sorted({outcome.status for outcome in ended.values()}):
            numbers = sorted(number for number, outcome in ended.items() if outcome.status is status)
            for start in range(0, len(numbers), PAGE_ROWS):
                values = {"status": status.value, "ids": id_list(numbers[start : start + PAGE_ROWS])}
                self._connection.execute(self._log.query("mark_rows"), values)


def milliseconds(moment: dt.datetime) -> int:
    """A moment in UTC as the journal has it."""
    since_1970 = moment.replace(tzinfo=None) - dt.datetime(1970, 1, 1)
    return round(since_1970 / dt.timedelta(milliseconds=1))


def nested(groups: Mapping[frozenset[str], Sequence[int]]) -> list[frozenset[str]]:
    """Those groups of outputs of which each holds the one before it, so that an order of batches
    can tell them apart.

    What is listed comes before what is ahead. So a group is listed as well that is a part of one
    which is, for its rows may come earlier in the same objects.
    """
    chain: list[frozenset[str]] = []
    # The largest first; equal ones by their names, so that it comes out alike each time.
    for group in sorted(groups, key=lambda names: (-len(groups[names]), sorted(names))):
        if all(group <= other or other <= group for other in chain):
            chain.append(group)
    left = [group for group in groups if group not in chain]
    ahead = [group for group in chain if not any(group < other for other in left)]
    return sorted(ahead, key=len)


def _only(documents: Sequence[OpenDocument], lacks: set[int]) -> list[OpenDocument]:
    """The documents with those of their rows that may still be missing."""
    left = []
    for document in documents:
        records = tuple(record for record in document.records if record in lacks)
        outcomes = tuple(outcome for outcome in document.outcomes if outcome.position[0] in records)
        if records:
            left.append(replace(document, records=records, outcomes=outcomes))
    return left


def _open_plans(name: str, documents: Sequence[OpenDocument]) -> Iterator[dict[str, Any]]:
    """Plans as the journal has them of a target that can be asked.

    Another one is given such rows anew.
    """
    for plan in dict.fromkeys(document.plan for document in documents):
        mine = [document for document in documents if document.plan == plan]
        details = [(document.id, document.records, document.outcomes, document.cut) for document in mine]
        records = {record for document in mine for record in document.records}
        yield _planned_row(name, plan or MOVED_PLAN, 0, records, details, (0, 0))


def _listed_rows(name: str, numbers: Sequence[int], tries: Tries) -> Iterator[dict[str, Any]]:
    """Rows that an output lacks, under a plan that its target does not have."""
    alike: dict[tuple[int, int], list[int]] = {}
    for number in sorted(set(numbers)):
        alike.setdefault(tries.get(number, (0, 0)), []).append(number)
    index = 0
    for tried, several in sorted(alike.items()):
        for start in range(0, len(several), LISTED_ROWS):
            index += 1  # above a plan without a name
            part = several[start : start + LISTED_ROWS]
            yield _planned_row(name, MOVED_PLAN, index, set(part), [(MOVED_PLAN, part)], tried)


def _planned_row(
    name: str,
    plan: str,
    index: int,
    records: set[int],
    details: Sequence[object],
    tried: tuple[int, int],
) -> dict[str, Any]:
    return {
        "output": name,
        "plan": plan,
        "place": index,
        "documents": len(details),
        "records": as_json(runs_of(records)),
        "details": as_json(details),
        "attempts": tried[0],
        "due": tried[1],
    }


def _note(outcome: Outcome) -> str | None:
    if outcome.note is None and outcome.winner is not None:
        return f"superseded by {outcome.winner[0]}"
    return outcome.note or None


def _worst(outcomes: Sequence[Outcome], outputs: int) -> Outcome:
    """What a row ends with: the worst of its outcomes.

    That policies left it out only where all say so.
    """
    filtered = [outcome for outcome in outcomes if outcome.reason is Reason.FILTERED]
    counted = outcomes
    if len(filtered) != outputs:
        counted = [outcome for outcome in outcomes if outcome not in filtered]
    # Nobody said anything of a row that all have: it was published.
    return max(counted, key=lambda outcome: SEVERITY[outcome.status], default=Outcome(position=()))
