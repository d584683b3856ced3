"""The queue in a database: what is asked of it, through SQLAlchemy or through any driver with the
DB-API.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Final, Protocol

from eventlog.core.errors import ConfigError, EventlogError, SourceError, shorten
from eventlog.sources.linter.exports import read_arrived
from eventlog.sources.linter.rows import QueueRow, queue_row, to_signed
from eventlog.sources.linter.settings import LinterSettings
from eventlog.sql.dialect import fill_holes, split

FETCHED_ROWS: Final = 500
"""Rows that are asked for at once."""

_half: Final = 1 << 63
# Names go into the text of queries, where no parameter can stand.
_name = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)?").fullmatch


class QueueSession(Protocol):
    """A connection to a database."""

    def select(self, statement: str) -> Iterator[Sequence[Any]]:
        """Yield the rows of a query."""

    def run(self, statements: Iterable[str]) -> None:
        """Runs statements in one transaction; durable when it returns."""

    def close(self) -> None: ...


class Queue:
    """The queue's rows by the transactions that they belong to."""

    def __init__(self, session: QueueSession, settings: LinterSettings) -> None:
        for name in (settings.table, settings.arrival):
            if _name(name) is None:
                raise ConfigError(f"{name!r} is no name of a table or column; correct source.linter.table or arrival.")
        self._session = session
        self._page = settings.names_code_page
        self._receiving = settings.variant == "receiving"
        # A receiving queue has no SYSLOG_ADDR; what its rows arrived by takes its place.
        address = settings.arrival if self._receiving else "SYSLOG_ADDR"
        self._holes = {"queue": settings.table, "address": address}

    def endings(self, after: int, most: int) -> list[QueueRow]:
        """Read up to `most` next rows that may end a transaction."""
        endings: list[QueueRow] = []
        for values in self._select("endings", range=self._range(after + 1, None)):
            # The query asks for all columns but DATA, which an end has nothing in.
            endings.append(queue_row([*values, b""], self._page))
            if len(endings) == most:
                break
        return endings

    def rows(self, transactions: Iterable[int], until: int) -> Iterator[QueueRow]:
        """Yield all rows of the transactions up to a place, by address or as they arrived."""
        selected = self._select("transactions", numbers=_numbers(transactions), range=self._range(0, until))
        rows = (queue_row(values, self._page) for values in selected)
        if self._receiving:
            return read_arrived(rows)
        return rows

    def delete(self, transactions: Mapping[int, int]) -> None:
        """Deletes the rows of transactions, given where each ended."""
        self._session.run(
            self._text("delete", numbers=_numbers([number]), range=self._range(0, end))
            for number, end in transactions.items()
        )

    def close(self) -> None:
        self._session.close()

    def _select(self, query: str, **holes: str) -> Iterator[Sequence[Any]]:
        return self._session.select(self._text(query, **holes))

    def _text(self, query: str, **holes: str) -> str:
        return _statement(query, **self._holes, **holes)

    def _range(self, first: int, last: int | None) -> str:
        """Write the condition for places from `first` to `last`."""
        # Places are unsigned and SQL's numbers signed: the upper half is negative, and comes behind
        # the other.
        address = self._holes["address"]
        low_word = "AND" if first >= _half else "OR"
        from_first = f"({address} >= {to_signed(first)} {low_word} {address} < 0)"
        if last is None:
            return from_first
        high_word = "OR" if last >= _half else "AND"
        to_last = f"({address} >= 0 {high_word} {address} <= {to_signed(last)})"
        return f"({from_first} AND {to_last})"


class DriverSession:
    """A session of a driver with the DB-API, as a site without a SQLAlchemy dialect has it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def select(self, statement: str) -> Iterator[Sequence[Any]]:
        with _in_our_words(Exception):
            cursor = self._connection.cursor()
            try:
                cursor.execute(statement)
                while fetched := cursor.fetchmany(FETCHED_ROWS):
                    yield from fetched
            finally:
                cursor.close()
                # Ends the transaction that reading opened: some drivers hold locks until then.
                self._connection.rollback()

    def run(self, statements: Iterable[str]) -> None:
        with _in_our_words(Exception):
            cursor = self._connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            cursor.close()
            self._connection.commit()

    def close(self) -> None:
        # A driver may refuse it where the connection is lost, and each has errors of its own.
        with suppress(Exception):
            self._connection.close()


class EngineSession:
    """Sessions of a SQLAlchemy engine, one for each question."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def select(self, statement: str) -> Iterator[Sequence[Any]]:
        from sqlalchemy.exc import SQLAlchemyError

        with _in_our_words(SQLAlchemyError), self._engine.connect() as connection:
            options = {"stream_results": True, "max_row_buffer": FETCHED_ROWS}
            result = connection.execution_options(**options).exec_driver_sql(statement)
            try:
                for chunk in result.partitions(FETCHED_ROWS):
                    yield from chunk
            finally:
                # Also where the reader stops in the midst: the session goes back without an open
                # cursor.
                result.close()

    def run(self, statements: Iterable[str]) -> None:
        from sqlalchemy.exc import SQLAlchemyError

        with _in_our_words(SQLAlchemyError), self._engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def close(self) -> None:
        self._engine.dispose()


def open_session(url: str, settings: LinterSettings) -> QueueSession:
    """Open a session for the URL, or with the driver set instead."""
    if not settings.driver:
        from eventlog.sql.connect import connect

        return EngineSession(connect(url))
    try:
        driver: Any = import_module(settings.driver)
    except ImportError as error:
        hint = "source.linter.driver names a Python module with connect(); install it where eventlog runs."
        raise ConfigError(
            f"The driver {settings.driver} cannot be loaded: {error}.",
            hint=hint,
        ) from None
    with _in_our_words(Exception):
        return DriverSession(driver.connect(**settings.connect))


def _statement(query: str, **holes: str) -> str:
    """Return a named query of the queue, with its holes filled."""
    return fill_holes(_texts()[query], holes, origin=f"queue.sql/{query}")


@cache
def _texts() -> dict[str, str]:
    return dict(split(files("eventlog.sources.linter").joinpath("queue.sql").read_text(encoding="utf-8")))


def _numbers(transactions: Iterable[int]) -> str:
    return ", ".join([str(to_signed(number)) for number in transactions])


@contextmanager
def _in_our_words(kind: type[Exception]) -> Iterator[None]:
    """Tells what the database refuses as a SourceError."""
    try:
        yield
    except EventlogError:
        raise
    except kind as error:
        original = getattr(error, "orig", None) or error
        reason = shorten(" ".join(str(original).split()), 300).rstrip(".")
        # Such an error comes again however often it is tried.
        kind_of_error = type(original).__name__
        lasting = kind_of_error in ("ProgrammingError", "UndefinedTable") or "no such" in reason
        raise SourceError(
            f"LINTER's queue cannot be used: {reason}.",
            may_pass=not lasting,
        ) from error
