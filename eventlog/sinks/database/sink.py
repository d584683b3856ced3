"""The database sink: rows of change tables and the position in one transaction, so that a repeat
does nothing.

The row of the position also says under which plan the last documents came, and who writes: it is
locked and looked at in the transaction of the rows, so that a publisher that was replaced writes
nothing more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec.structs import replace
from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import DBAPIError, OperationalError

from eventlog.core.errors import ConfigError, ExpressionError, OccupiedError, SinkError, SourceError
from eventlog.core.model import Document, Outcome
from eventlog.core.seams import Resolved, SinkCapabilities, Tenure
from eventlog.qlik.change_seq import moment_of
from eventlog.qlik.change_tables.rows import RowBlock, RowsDocument
from eventlog.sinks.change_files.settings import SET_ASIDE
from eventlog.sinks.database.attrep import ENDED, RUNNING, Attrep
from eventlog.sinks.database.control import SERVER, Control, RefusedEvent, TaskState
from eventlog.sinks.database.evolve import BlockShape, Evolution
from eventlog.sinks.database.fill import Filling, Refused, message_of
from eventlog.sinks.database.settings import DatabaseSettings
from eventlog.sinks.ownership import make_replaced_error, take_over
from eventlog.sql.access import find_losses, in_our_words, is_lasting, make_durable
from eventlog.sql.connect import connect, limit_sessions
from eventlog.sql.dialect import dialect_of, statement

__all__ = ["DatabaseSettings", "DatabaseSink"]

_log = logging.getLogger(__name__)

HELD_SECONDS = 60.0
"""A publisher that is frozen in the middle of a transaction holds the row of its position for about
so long.
"""

Refusals = list[RefusedEvent]


class DatabaseSink:
    """Writes the rows of documents into change tables."""

    capabilities = SinkCapabilities(resolves=True)

    def __init__(self, settings: DatabaseSettings, engine: Engine | None = None) -> None:
        self._settings = settings
        self._engine = _engine(settings.url) if engine is None else engine
        self._dialect = dialect = dialect_of(self._engine)
        self._begin = dialect.ddl.begin_ddl
        self._transactional = dialect.ddl.transactional_ddl
        # For nothing: a statement of its own would be a tenth of a small commit.
        self._durably = statement(dialect, "durably", durable=statement(dialect, "durable"))
        self._control = Control(settings.task, settings.schema, self._durably)
        whose = {"server_name": SERVER, "task_name": settings.task}
        self._attrep = Attrep(settings.control_tables, self._control.tables, whose)
        self._evolution = Evolution(self._control, settings.schema, apply=settings.ddl == "apply", index=settings.index)
        self._state: TaskState | None = None
        self._converting = False

    def open(self, tenure: Tenure | None) -> None:
        """Takes the task over, and learns how far it is."""
        # The server may have been started anew since connections were made, and the first one that
        # is used would fail.
        self._engine.dispose()
        self._make_tables()
        self._evolution.forget()
        self._converting = tenure is None
        with self._transaction() as connection:
            make_durable(connection, self._dialect)  # there may be no row yet
            former = self._control.state(connection)
            known = former or TaskState()
            what = f"The task {self._settings.task!r} of change tables"
            way_out = "Give the output a `task` of its own, or another schema."
            owner = take_over(known.owner, tenure, what, way_out)
            now = replace(known, owner=owner)
            if now != former:
                self._control.advance(connection, former, now)
            losses = find_losses(connection, self._dialect)
        for level, found, mend in losses:
            if level == "failure":
                _log.warning("The database of the change tables: %s %s", found, mend)
        self._evolution.log = owner.log
        self._state = now

    # Each task makes them, whoever comes first.
    def _make_tables(self) -> None:
        try:
            with self._transaction() as connection:
                self._control.prepare(connection)
        except SinkError as error:
            if error.may_pass:
                raise
            # A database says of a schema that is missing only that the table cannot be made.
            schema = self._settings.schema
            with in_our_words(self._engine, "The database of the change tables"):
                missing = schema is not None and schema not in inspect(self._engine).get_schema_names()
            if missing:
                message = f"The database of the change tables has no schema {schema}."
                output = f"the output whose task is {self._settings.task!r}"
                hint = f"Create it, or name another one as `schema` of {output}."
                raise ConfigError(message, hint=hint) from None
            # Another task may have made the same at the same time.
            with self._transaction() as connection:
                self._control.prepare(connection)

    def last(self) -> str:
        """Return the change_seq of the last document durably there."""
        return "" if self._state is None else self._state.change_seq

    def resolve(self, plan: str) -> Resolved:
        """Look whether the plan was the last one committed, and read its refusals."""
        with self._transaction() as connection:
            self._state = state = self._ours(connection)
            last = state.converted if self._converting else state.plan
            if not self._is_there(state, plan):
                return Resolved(last=last, documents=frozenset())
            answers = tuple(self._read_known(connection, state, plan))
        return Resolved(last=last, documents=None, answers=answers)

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        """Do nothing: rows are invisible until the transaction commits."""

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        """Write all documents in one transaction; return the events whose rows were refused."""
        rows = [document for document in documents if isinstance(document, RowsDocument)]
        if not rows:
            return []
        try:
            return self._write(rows, plan)
        except BaseException:
            # A rolled-back transaction has taken with it what it made and altered.
            self._evolution.forget()
            raise

    def close(self) -> None:
        if self._settings.control_tables and self._state is not None:
            # The status is only for operators: nobody fails to end because of it.
            with suppress(SinkError, OccupiedError), self._transaction() as connection:
                self._ours(connection)
                self._attrep.status(connection, ENDED, None)
        self._engine.dispose()

    def _write(self, documents: Sequence[RowsDocument], plan: str) -> Sequence[Outcome]:
        shapes: list[list[BlockShape | str]] = []
        # Altered before, in a transaction of its own; what it adds is NULL in rows until they come.
        if not self._transactional:  # DDL would end the transaction of the rows
            with self._transaction() as connection:
                if not self._is_there(self._ours(connection), plan):
                    shapes = [self._shapes(connection, document) for document in documents]
        outcomes: list[Outcome] = []
        with self._transaction() as connection:
            former = self._ours(connection)
            if self._is_there(former, plan):
                return self._read_known(connection, former, plan)
            if self._state is not None and former.plan != self._state.plan:
                hint = "The publisher asks it what it has, and sends the rest again."
                raise SinkError("The database of the change tables has lost what was committed there.", hint=hint)
            for number, document in enumerate(documents):
                # Made one by one: a later document may have its table altered, when the rows before
                # are in.
                block_shapes = shapes[number] if shapes else self._shapes(connection, document)
                outcomes += self._put_rows(connection, document, block_shapes, plan)
            now = self._after(former, documents[-1].id, plan)
            applied = moment_of(documents[-1].id)
            self._attrep.status(connection, RUNNING, applied)
            rows = sum(len(block.positions) for document in documents for block in document.blocks)
            self._attrep.history(connection, rows, applied)
            self._control.advance(connection, former, now)
        self._state = now
        return outcomes

    def _ours(self, connection: Connection) -> TaskState:
        """Read the task's state; raise OccupiedError if another publisher has taken it over."""
        state = self._control.state(connection)
        assert self._state is not None
        if state is None or state.owner != self._state.owner:
            raise make_replaced_error(f"the task {self._settings.task!r} of change tables")
        return state

    def _read_known(self, connection: Connection, state: TaskState, plan: str) -> Sequence[Outcome]:
        """Read a plan's refusals.

        They are committed once more first: the former commit may not be on the disk yet.
        """
        self._control.advance(connection, state, state)
        return self._control.read_refused(connection, plan)

    def _is_there(self, state: TaskState, plan: str) -> bool:
        return bool(plan) and plan == (state.converted if self._converting else state.plan)

    def _after(self, former: TaskState, change_seq: str, plan: str) -> TaskState:
        """Return the task's state after this document."""
        now = replace(former, change_seq=change_seq)
        if not plan:
            return now
        # A conversion leaves the plan of the publisher alone, who may have to repeat it.
        if self._converting:
            return replace(now, converted=plan)
        return replace(now, plan=plan)

    def _put_rows(
        self,
        connection: Connection,
        document: RowsDocument,
        shapes: Sequence[BlockShape | str],
        plan: str,
    ) -> Sequence[Outcome]:
        """Puts a document's rows into their tables; which events did not get in."""
        refused: Refusals = []
        for block, shape in zip(document.blocks, shapes, strict=True):
            not_taken = self._fill(connection, block, shape)
            whose = block.table.schema or "", block.table.name
            if isinstance(shape, str):
                self._attrep.suspend(connection, whose, shape)
            else:
                self._attrep.resume(connection, whose)
            self._attrep.exceptions(connection, [(whose, event.note) for event in not_taken])
            refused += not_taken
        self._control.refuse(connection, plan, document.id, refused)
        opened = {}
        for block in document.blocks:
            if block.partition is not None:
                opened[block.target] = block.partition.name
        if opened:
            self._control.open_partitions(connection, opened, document.id)
        return [event.outcome for event in refused]

    def _shapes(self, connection: Connection, document: RowsDocument) -> list[BlockShape | str]:
        """Create or alter the tables of the blocks; return how each block fits, or why it does not."""
        shapes: list[BlockShape | str] = []
        for block in document.blocks:
            try:
                with _aside(connection, undone=self._transactional):
                    shapes.append(self._evolution.shape(connection, block, document.id))
            except ExpressionError as error:
                shapes.append(str(error))
        return shapes

    def _fill(self, connection: Connection, block: RowBlock, shape: BlockShape | str) -> Refusals:
        """Puts a block into its table.

        The rows that do not get in are set aside, or end the work.
        """
        if isinstance(shape, str):  # why there is no table for it
            return self._refuse(block.target, [Refused(positions, shape) for positions in block.positions])
        return self._refuse(block.target, Filling(connection, shape, block).run())

    def _refuse(self, target: str, changes: Sequence[Refused]) -> Refusals:
        lost = [change.why for change in changes if not change.partial]
        if lost and self._settings.on_refused == "stop":
            problem = f"The change table {target} does not take a row: {lost[0]}."
            raise SinkError(problem, hint=SET_ASIDE, may_pass=False)
        # An event with two rows is refused once.
        events = {
            position: RefusedEvent(target, position, f"{target}: {change.why}.", change.partial)
            for change in changes
            for position in change.positions
        }
        return list(events.values())

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Begin a transaction that includes DDL where the database allows it."""
        try:
            what = "The database of the change tables"
            with in_our_words(self._engine, what), self._engine.begin() as connection:
                if self._begin is not None:
                    connection.exec_driver_sql(self._begin)
                if not self._durably:
                    make_durable(connection, self._dialect)
                yield connection
        except OccupiedError:
            raise
        except SourceError as error:
            raise SinkError(error.message, hint=error.hint, may_pass=error.may_pass) from error


def _engine(url: str) -> Engine:
    """Make an engine with time limits on locks and on a frozen session."""
    engine = connect(url, may_create=True)
    limit_sessions(engine, None, None, HELD_SECONDS)
    return engine


@contextmanager
def _aside(connection: Connection, *, undone: bool) -> Iterator[None]:
    """Turns the failure of DDL into a reason.

    What it did is undone where the database can do that.
    """
    savepoint = connection.begin_nested() if undone else None
    try:
        yield
    except (ExpressionError, DBAPIError) as error:
        # Neither a lost connection nor a lock is the table's fault: the whole transaction is tried
        # again.
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            raise
        if isinstance(error, OperationalError) and not is_lasting(error.orig):
            raise
        if savepoint is not None:
            savepoint.rollback()
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(f"it cannot be made or altered: {message_of(error)}") from None
    if savepoint is not None:
        savepoint.commit()
