"""The sinks of lakes: a plan is kept whole beside the tables first, and then goes into one table
after the other.

    <path>/_eventlog/<task>/_plan.arrow      the rows of the last plan
    <path>/_eventlog/<task>/_position.json   its number, its tables, and what was refused of it

Law: a plan is there from the moment at which its file and the position are shown (`sinks.plans`),
which only the owner does. Each table notes the number of the plan with its rows, in the same
commit. So whoever comes next puts the rest of the plan where it is not yet, and a former owner that
goes on doubles nothing: a table takes a number once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DataError, SinkError
from eventlog.core.model import Document, Outcome
from eventlog.core.rules.meaning import refusals
from eventlog.core.seams import Resolved, SinkCapabilities, Tenure
from eventlog.qlik.change_tables.rows import RowsDocument
from eventlog.sinks.lake.settings import LakeSettings
from eventlog.sinks.lake.staging import Notes, Staged, StagedTable, Staging, pack_tables, unpack_table
from eventlog.sinks.plan_folder import PlanFolder, not_written
from eventlog.sinks.plans import HiddenFiles, Plans
from eventlog.sinks.store.address import target_of

POSITION: Final = "_position.json"
ROWS: Final = "_plan.arrow"


class LakeTables(Protocol):
    """The tables of one kind of lake. SinkError says what went wrong there."""

    def schema(self, name: str) -> pa.Schema | None:
        """Return the table's columns as of now; None if there is no such table."""

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of an existing table in batches."""

    def widens(self, former: pa.DataType, kind: pa.DataType) -> bool:
        """Return True if a column can be widened to this type."""

    def take(self, writer: str, number: int, table: StagedTable, rows: pa.Table) -> int:
        """Puts the rows into the table, with the number of the plan in the same commit, unless it
        has one as high.

        Returns the highest number of this writer that the table has.
        """

    def forget(self) -> None:
        """Looks at every table anew."""

    def close(self) -> None:
        """Lets go of connections."""


class LakeState(Struct, frozen=True, kw_only=True):
    """How far the lake is. `writer` is what its tables know this task as, `number` is that of the
    last plan.

    `plan` and `converted` are the last plans of a publisher and of a conversion; `refusals` are
    theirs.
    """

    change_seq: str = ""
    plan: str = ""
    converted: str = ""
    writer: str = ""
    number: int = 0
    tables: tuple[StagedTable, ...] = ()
    refusals: dict[str, Notes] = {}


class PreparedPlan(Struct, frozen=True, kw_only=True):
    """A plan whose files are hidden, and how far the lake is once they are shown; `before` is how
    far it was.
    """

    documents: Sequence[RowsDocument]
    before: LakeState
    after: LakeState
    staged: list[Staged]
    refused: Notes
    hidden: HiddenFiles


class LakeSink:
    """Writes the rows of documents into tables of a lake."""

    capabilities = SinkCapabilities(resolves=True)

    def __init__(self, settings: LakeSettings, tables: LakeTables, target: Path | Plans | None = None) -> None:
        if target is None:
            target = target_of(plans_path(settings), settings.store, ordered=False)
        if isinstance(target, Path):
            folder = target
            self._plans: Plans = PlanFolder(folder, lambda: [folder])
        else:
            self._plans = target
        self._tables = tables
        self._staging = Staging(settings, tables.schema, tables.widens)
        self._state = LakeState()
        self._converting = False
        self._in_tables = 0
        """The number of the plan that all tables have, as far as this process knows."""
        self._prepared: dict[str, PreparedPlan] = {}

    def open(self, tenure: Tenure | None) -> None:
        """Takes the lake over, and reads how far it is."""
        self._converting = tenure is None
        self._forget()
        # What this process knew may be of before somebody else had the lake.
        try:
            self._plans.take_over(tenure)
            self._state = self._read()
        except OSError as error:
            raise self._make_error(error) from error

    def last(self) -> str:
        """Return the change_seq of the last document durably there."""
        return self._state.change_seq

    def resolve(self, plan: str) -> Resolved:
        """Puts the rest of a plan that was begun where it belongs; of one that was not nothing is
        there.
        """
        self._finish_former()
        last = self._state.converted if self._converting else self._state.plan
        if not self._has(plan):
            return Resolved(last=last, documents=frozenset())
        answers = tuple(refusals(self._state.refusals.get(plan, ())))
        return Resolved(last=last, documents=None, answers=answers)

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        """Writes the rows where nobody looks at them."""
        rows = _rows_of(documents)
        if plan and rows and not self._has(plan):
            self._forget_prepared()
            self._prepared[plan] = self._make_plan(plan, rows)

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        """Puts the rows into their tables, durable when it returns; answers which events have no
        row there.
        """
        rows, state = _rows_of(documents), self._state
        # The last plan may not be in all of its tables, and the next one must not overtake it.
        if self._in_tables != state.number:
            self._finish_former()
            state = self._state
        if self._has(plan):
            return refusals(state.refusals.get(plan, ()))
        if not rows:
            return refusals(())
        prepared = self._prepared.pop(plan, None)
        if prepared is not None and (prepared.before is not state or prepared.documents != rows):
            prepared.hidden.discard()  # their number would be another one now
            prepared = None
        made = prepared or self._make_plan(plan, rows)
        self._in_tables = -1  # until they are: what breaks off between leaves it open
        try:
            self._plans.show(made.hidden, apart=1)
        except OSError as error:
            raise self._make_error(error) from error
        self._state = made.after
        self._put_plan(made.staged)
        return refusals(made.refused)

    def close(self) -> None:
        self._forget_prepared()
        self._tables.close()

    def _has(self, plan: str) -> bool:
        """Return True if this plan was the last one shown."""
        last = self._state.converted if self._converting else self._state.plan
        return bool(plan) and plan == last

    def _finish_former(self) -> None:
        """Finishes what was begun: the plan is shown or gone, and if it is shown, its tables have
        it.
        """
        self._forget()
        try:
            self._plans.finish_former()
            # A plan without tables has no rows, and no file of them.
            self._state = self._read()
            body = self._plans.read(self._plans.folder / ROWS) if self._state.tables else b""
        except OSError as error:
            raise self._make_error(error) from error
        if body is None:
            hint = "It has rows that may not be in their tables yet; restore it from a backup."
            raise DataError(f"{self._path(ROWS)} is missing.", hint=hint)
        try:
            staged = [(table, unpack_table(table, body)) for table in self._state.tables]
        except pa.ArrowException as error:
            hint = "It has rows that may not be in their tables yet; restore it from a backup."
            raise DataError(f"{self._path(ROWS)} cannot be read.", hint=hint) from error
        self._put_plan(staged)

    def _put_plan(self, staged: Sequence[Staged]) -> None:
        """Puts the last plan into the tables that do not have it."""
        for table, rows in staged:
            there = self._tables.take(self._state.writer, self._state.number, table, rows)
            if there <= self._state.number:
                continue
            # A table that is ahead of us tells that somebody has taken the lake over, or that
            # something was restored.
            self._plans.finish_former()  # OccupiedError where it is the first
            position = self._path(POSITION)
            known = f"{position} knows {self._state.number}"
            message = f"The table {table.name} has plan {there} already, and {known}."
            hint = f"Restore {position} as it was, or the table to its state of then."
            raise DataError(message, hint=hint)
        self._in_tables = self._state.number

    def _make_plan(self, plan: str, documents: Sequence[RowsDocument]) -> PreparedPlan:
        """Stage the rows of documents, hidden until all of them are shown together."""
        state = self._state
        staged, refused = self._staging.stage(documents)
        tables, body = pack_tables(staged)
        after = replace(
            state,
            change_seq=documents[-1].id,
            # A name for this task in the tables that no other task has, made once.
            writer=state.writer or secrets.token_hex(8),
            number=state.number + 1,
            tables=tables,
        )
        if plan:
            last = "converted" if self._converting else "plan"
            after = replace(after, **{last: plan})
            # Those of the other kind's last plan stay: it may be asked for as well.
            notes = {**state.refusals, plan: refused}
            kept = {name: notes[name] for name in (after.plan, after.converted) if notes.get(name)}
            after = replace(after, refusals=kept)
        try:
            self._plans.make(self._plans.folder)
            files = [
                (self._plans.folder / ROWS, body),
                (self._plans.folder / POSITION, msgspec.json.encode(after)),
            ]
            hidden = self._plans.hide(plan or secrets.token_hex(8), files)
        except OSError as error:
            raise self._make_error(error) from error
        return PreparedPlan(
            documents=documents,
            before=state,
            after=after,
            staged=staged,
            refused=refused,
            hidden=hidden,
        )

    def _read(self) -> LakeState:
        content = self._plans.read(self._plans.folder / POSITION)
        if content is None:
            return LakeState()
        try:
            return msgspec.json.decode(content, type=LakeState)
        except msgspec.DecodeError as error:
            hint = "It says how far the tables are; restore it from a backup."
            raise DataError(f"{self._path(POSITION)} cannot be read: {error}.", hint=hint) from None

    def _forget(self) -> None:
        """Forget cached state, after an error."""
        self._forget_prepared()
        self._tables.forget()
        self._in_tables = -1

    def _forget_prepared(self) -> None:
        while self._prepared:
            self._prepared.popitem()[1].hidden.discard()

    def _path(self, name: str) -> Any:
        return self._plans.folder / name

    def _make_error(self, error: OSError) -> SinkError:
        return not_written("Rows", self._plans.folder, error)


def plans_path(settings: LakeSettings) -> str:
    """Return the path of a task's pending plans."""
    return f"{settings.path.rstrip('/')}/_eventlog/{settings.task}"


def _rows_of(documents: Sequence[Document]) -> list[RowsDocument]:
    return [document for document in documents if isinstance(document, RowsDocument)]
