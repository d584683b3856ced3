"""How statements reach a database: transactions with the session that reading needs, plain tuples, errors by blame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from eventlog.errors import SourceError, shortened
from eventlog.sql.dialect import Dialect, dialect_of, is_lasting, is_passing
from eventlog.sql.queries import statement

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.sql.elements import TextClause

IS_SET = "eventlog session"
"""What a connection's info holds when its session was prepared for good."""


@contextmanager
def transaction(engine: Engine, what: str, *, lone: bool = False) -> Iterator[Connection]:
    """A transaction in the session that reading needs; what the database refuses is told as a SourceError.

    `lone` makes each statement a transaction of its own, where that costs less.
    """
    with in_our_words(engine, what), _begun(engine, lone=lone) as connection:
        if IS_SET not in connection.info:
            for setting in session_statements(dialect_of(engine)):
                connection.exec_driver_sql(setting)
        if dialect_of(engine).lob_parameters:
            _bind_long_texts(connection)
        yield connection


def _begun(engine: Engine, *, lone: bool) -> AbstractContextManager[Connection]:
    if lone and dialect_of(engine).lone_statements:
        return engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    return engine.begin()


def session_statements(dialect: Dialect) -> list[str]:
    """What prepares a session for reading."""
    return [part for part in statement(dialect, "session").split(";\n") if part]


def _bind_long_texts(connection: Connection) -> None:
    from eventlog.sql.longtext import bind_long_texts

    bind_long_texts(connection)


@contextmanager
def in_our_words(engine: Engine, what: str) -> Iterator[None]:
    """Tells what the database refuses as a SourceError."""
    from sqlalchemy.exc import SQLAlchemyError

    driver_error = getattr(engine.dialect.loaded_dbapi, "Error", SQLAlchemyError)
    try:
        yield
    except (SQLAlchemyError, driver_error) as error:
        raise _source_error(engine, what, error) from error


def fetched(
    connection: Connection, query: TextClause | str, parameters: Mapping[str, Any] | tuple[Any, ...] | None = None
) -> list[tuple[Any, ...]]:
    """What a query finds, straight from the driver: rows with names and converted values cost half of the reading."""
    try:
        return _fetched(connection, query, parameters)
    except Exception as error:
        session: Any = connection.connection.driver_connection
        if "decode" not in str(error).lower() or not hasattr(session, "text_factory"):
            raise
        # SQLite stores any bytes as text; as lone surrogates they reach the rules, which refuse the one row they are in.
        usual, session.text_factory = session.text_factory, _any_text
        try:
            return _fetched(connection, query, parameters)
        finally:
            session.text_factory = usual


def in_text(identifier: str) -> str:
    """A quoted identifier as SQLAlchemy's text() takes it, where a colon begins a parameter."""
    return identifier.replace(":", "\\:")


def verbatim(sql: str) -> TextClause:
    """SQL without parameters, in which a colon is a colon and a percent sign one; some drivers take that for a hole."""
    from sqlalchemy import text

    return text(in_text(sql))


def _fetched(
    connection: Connection, query: TextClause | str, parameters: Mapping[str, Any] | tuple[Any, ...] | None
) -> list[tuple[Any, ...]]:
    if isinstance(query, str):
        result = connection.exec_driver_sql(query, parameters)
    else:
        result = connection.execute(query, parameters)
    found = result.cursor.fetchall()
    result.close()
    return list(found)


def _any_text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogateescape")


def _source_error(engine: Engine, what: str, error: Exception) -> SourceError:
    """Waiting helps when the connection, a lock or the server was the trouble, and never when the statement was."""
    original = getattr(error, "orig", None) or error
    drivers = engine.dialect.loaded_dbapi
    passing = tuple(kind for name in ("OperationalError", "InterfaceError") if (kind := getattr(drivers, name, None)))
    # What is no driver's error comes from the pool: it waited for a connection and got none.
    may_pass = isinstance(original, passing) or not isinstance(original, getattr(drivers, "Error", Exception))
    may_pass = (may_pass and not is_lasting(original)) or is_passing(dialect_of(engine), original)
    said = shortened(" ".join(str(original).split()), 300).rstrip(".")
    return SourceError(f"{what} cannot be used: {said}.", may_pass=may_pass)
