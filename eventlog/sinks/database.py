"""The database sink: rows of change tables and the position in one transaction, so that a repeat does nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from eventlog.discreet import Discreet
from eventlog.errors import ConfigError, ExpressionError, SinkError, SourceError
from eventlog.model import Document, Outcome, Position
from eventlog.qlik.rows import RowBlock, RowsDocument
from eventlog.sinks.fitting import SET_ASIDE
from eventlog.sinks.tables.control import Control, refusal
from eventlog.sinks.tables.evolve import Evolution, Shape
from eventlog.sinks.tables.fill import Filling, said
from eventlog.sql.dialect import dialect_of, is_lasting

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

Refusals = list[tuple[str, Position, str]]


class DatabaseSettings(Discreet, frozen=True, kw_only=True):
    """Where change tables stand. `task` names the position there: two publishers into one schema have two.

    `ddl` says whether change tables follow their sources; `on_refused` whether a row that the target does not take is
    set aside, or ends the work; `index` whether new change tables get an index on change_seq.
    """

    url: str
    schema: str | None = None
    task: str = "eventlog"
    ddl: Literal["apply", "ignore"] = "apply"
    on_refused: Literal["set-aside", "stop"] = "set-aside"
    index: bool = True

    def __post_init__(self) -> None:
        if not 0 < len(self.task) <= 128:
            raise ConfigError("output.task must have between 1 and 128 characters.")


class DatabaseSink:
    """Writes the rows of documents into change tables."""

    def __init__(self, settings: DatabaseSettings, engine: Engine | None = None) -> None:
        from eventlog.sql.connect import connect

        self._settings = settings
        self._engine = connect(settings.url, may_create=True) if engine is None else engine
        dialect = dialect_of(self._engine)
        self._begin = dialect.begin_ddl
        self._transactional = dialect.transactional_ddl
        self._control = Control(settings.task, settings.schema)
        self._evolution = Evolution(self._control, settings.schema, apply=settings.ddl == "apply", index=settings.index)
        with self._transaction() as connection:
            self._control.tables.create_all(connection)
            self._last = self._control.last(connection)

    def last(self) -> str:
        """The change_seq of the last document that is durably there."""
        return self._last

    def write(self, documents: Sequence[Document]) -> Sequence[Outcome]:
        """Each document in a transaction of its own; answers which events' rows the target refused."""
        outcomes: list[Outcome] = []
        for document in documents:
            assert isinstance(document, RowsDocument), "the database sink takes change tables"
            try:
                outcomes += self._written(document)
            except BaseException:
                self._evolution.forget()
                raise
            self._last = max(self._last, document.id)
        return outcomes

    def close(self) -> None:
        """Ends the connections."""
        self._engine.dispose()

    def _written(self, document: RowsDocument) -> Sequence[Outcome]:
        if document.id <= self._last:
            with self._transaction() as connection:
                return self._control.refused(connection, document.id)
        shapes: list[Shape | str] = []
        if not self._transactional:  # DDL would end the transaction of the rows
            with self._transaction() as connection:
                shapes = self._shapes(connection, document)
        with self._transaction() as connection:
            last = self._control.last(connection)
            if document.id <= last:  # somebody else has written it meanwhile
                return self._control.refused(connection, document.id)
            refused: Refusals = []
            for block, shape in zip(document.blocks, shapes or self._shapes(connection, document), strict=True):
                refused += self._filled(connection, block, shape)
            self._control.refuse(connection, document.id, refused)
            opened = {block.target: block.partition.name for block in document.blocks if block.partition is not None}
            if opened:
                self._control.open_partitions(connection, opened, document.id)
            self._control.advance(connection, last, document.id)
        return [refusal(position, note) for _, position, note in refused]

    def _shapes(self, connection: Connection, document: RowsDocument) -> list[Shape | str]:
        """How each block gets in, after what had to be made or altered, or why it cannot."""
        found: list[Shape | str] = []
        for block in document.blocks:
            try:
                with _aside(connection, undone=self._transactional):
                    found.append(self._evolution.shape(connection, block, document.id))
            except ExpressionError as error:
                found.append(str(error))
        return found

    def _filled(self, connection: Connection, block: RowBlock, shape: Shape | str) -> Refusals:
        """Puts a block into its table; the rows that do not get in are set aside, or end the work."""
        if isinstance(shape, str):
            return self._refused(block.target, [(positions, shape) for positions in block.positions])
        return self._refused(block.target, Filling(connection, shape, block).run())

    def _refused(self, target: str, found: Sequence[tuple[tuple[Position, ...], str]]) -> Refusals:
        if found and self._settings.on_refused == "stop":
            problem = f"The change table {target} does not take a row: {found[0][1]}."
            raise SinkError(problem, hint=SET_ASIDE, may_pass=False)
        notes = {position: f"{target}: {why}." for positions, why in found for position in positions}
        return [(target, position, note) for position, note in notes.items()]

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """A transaction in which tables can be made too, where the database can do that."""
        from eventlog.sql.access import in_our_words

        try:
            with in_our_words(self._engine, "The database of the change tables"), self._engine.begin() as connection:
                if self._begin is not None:
                    connection.exec_driver_sql(self._begin)
                yield connection
        except SourceError as error:
            raise SinkError(error.message, may_pass=error.may_pass) from error


@contextmanager
def _aside(connection: Connection, *, undone: bool) -> Iterator[None]:
    """Turns the failure of DDL into a reason; what it did is undone where the database can do that."""
    from sqlalchemy.exc import DBAPIError, OperationalError

    savepoint = connection.begin_nested() if undone else None
    try:
        yield
    except (ExpressionError, DBAPIError) as error:
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            raise
        if isinstance(error, OperationalError) and not is_lasting(error.orig):
            raise
        if savepoint is not None:
            savepoint.rollback()
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(f"it cannot be made or altered: {said(error)}") from None
    if savepoint is not None:
        savepoint.commit()
