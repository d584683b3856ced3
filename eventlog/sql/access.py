"""How statements reach a database: transactions with the session that reading needs, plain tuples,
errors by blame.

What a driver's error means: whether waiting cures it, who has locked what, whether a right is
missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from eventlog.core.errors import SourceError, shortened
from eventlog.sql.dialect import Dialect, dialect_of, dialects, statement

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.sql.elements import TextClause

IS_SET = "eventlog session"
"""What a connection's info holds when its session was prepared for good."""

UNFINISHED = "8s2b"
"""SQLAlchemy's code for a connection that was lost: it speaks of what it wants done, and not of what has happened."""

LOCKED = (
    "Another process has locked the database file and does not release it: `fuser` with the file's name says which."
)
"""What is said of a database that is a file, where one process that is frozen stops all others."""


@contextmanager
def transaction(engine: Engine, what: str, *, lone: bool = False) -> Iterator[Connection]:
    """A transaction in the session that reading needs; what the database refuses is told as a
    SourceError.

    `lone` makes each statement a transaction of its own, where that costs less.
    """
    dialect = dialect_of(engine)
    with in_our_words(engine, what):
        if lone and dialect.lone_statements:
            begun: AbstractContextManager[Connection] = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        else:
            begun = engine.begin()
        with begun as connection:
            if IS_SET not in connection.info:
                for setting in session_statements(dialect):
                    connection.exec_driver_sql(setting)
            if dialect.lob_parameters:
                from eventlog.sql.longtext import bind_long_texts

                bind_long_texts(connection)
            yield connection


def session_statements(dialect: Dialect) -> list[str]:
    """What prepares a session for reading."""
    return [part for part in statement(dialect, "session").split(";\n") if part]


@contextmanager
def in_our_words(engine: Engine, what: str) -> Iterator[None]:
    """Tells what the database refuses as a SourceError."""
    try:
        yield
    except driver_errors(engine) as error:
        said = f"{what} cannot be used: {words_of(error)}."
        raise SourceError(said, hint=hint_of(engine, error), may_pass=may_pass(engine, error)) from error


def fetched(
    connection: Connection, query: TextClause | str, parameters: Mapping[str, Any] | tuple[Any, ...] | None = None
) -> list[tuple[Any, ...]]:
    """What a query finds, straight from the driver: rows with names and converted values cost half of the reading."""
    try:
        if isinstance(query, str):
            result = connection.exec_driver_sql(query, parameters)
        else:
            result = connection.execute(query, parameters)
        found = list(result.cursor.fetchall())
        result.close()
        return found
    except Exception as error:
        if "decode" not in str(error).lower() or not dialect_of(connection).stores_any_bytes:
            raise
        session: Any = connection.connection.driver_connection
        if session.text_factory is _any_text:  # then it is asked the second time
            raise
        # As lone surrogates such bytes reach the rules, which refuse the one row they are in.
        usual, session.text_factory = session.text_factory, _any_text
        try:
            return fetched(connection, query, parameters)
        finally:
            session.text_factory = usual


def answers(
    connection: Connection, query: str, parameters: Mapping[str, Any] | None = None, /, **holes: str
) -> Sequence[Any]:
    """What a named query finds; nothing in a database that has no such query. What fills its holes is SQL already."""
    from sqlalchemy import text

    spelled = {hole: in_text(sql) for hole, sql in holes.items()}
    asked = statement(dialect_of(connection), query, **spelled)
    return connection.execute(text(asked), parameters).all() if asked else ()


def with_statuses(dialect: Dialect, holes: Mapping[str, str], statuses: str) -> str:
    """The condition of rows with one of these letters; without letters it is every row."""
    letters = ", ".join(dialect.literal(letter) for letter in dict.fromkeys(statuses))
    return statement(dialect, "chosen_letters" if letters else "chosen_all", **holes, letters=f"({letters})")


def in_text(identifier: str) -> str:
    """A quoted identifier as SQLAlchemy's text() takes it, where a colon begins a parameter."""
    return identifier.replace(":", "\\:")


def as_table(query: str) -> str:
    """A query as something to select from."""
    return f"(\n{query.strip().removesuffix(';')}\n)"  # its last line may be a comment


def verbatim(sql: str) -> TextClause:
    """SQL without parameters, in which a colon is a colon and a percent sign one; some drivers take that for a hole."""
    from sqlalchemy import text

    return text(in_text(sql))


def _any_text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogateescape")


def driver_errors(engine: Engine) -> tuple[type[Exception], ...]:
    """What may be raised when a database refuses something."""
    from sqlalchemy.exc import SQLAlchemyError

    return (SQLAlchemyError, getattr(engine.dialect.loaded_dbapi, "Error", SQLAlchemyError))


def may_pass(engine: Engine, error: Exception) -> bool:
    """Waiting helps when the connection, a lock or the server was the trouble, and never when the statement was."""
    original = getattr(error, "orig", None) or error
    drivers = engine.dialect.loaded_dbapi
    passing = tuple(kind for name in ("OperationalError", "InterfaceError") if (kind := getattr(drivers, name, None)))
    # What is no driver's error comes from the pool: it waited for a connection and got none.
    passes = isinstance(original, passing) or not isinstance(original, getattr(drivers, "Error", Exception))
    return (passes and not is_lasting(original)) or is_passing(dialect_of(engine), original)


def words_of(error: Exception) -> str:
    """What a database has said, in one line and not too long."""
    if getattr(error, "code", None) == UNFINISHED:
        return "the connection was lost in the middle of a transaction"
    original = getattr(error, "orig", None) or error
    return shortened(" ".join(str(original).split()), 300).rstrip(".")


def right_hint(original: BaseException | None) -> str | None:
    """What mends a right that is missing; None where the database refuses something else."""
    denied = any(is_denied(dialect, original) for dialect in dialects())
    return (
        "`eventlog rights` grants what each role needs; `eventlog check` names the rights that a publisher lacks."
        if denied
        else None
    )


def unconnected(error: Exception) -> str | None:
    """What to check where the error says that no connection could be made: `connect` has noted it."""
    return next(iter(getattr(error, "__notes__", ())), None)


def hint_of(engine: Engine, error: Exception) -> str | None:
    """What mends it: where somebody has locked the database, or a policy of a table's owner would have hidden rows."""
    original = getattr(error, "orig", None) or error
    if is_locked(dialect_of(engine), original):
        return LOCKED
    if (note := unconnected(error)) is not None:
        return note
    advice = dialect_of(engine).advice
    known = [code for code in _passing_codes(dialect_of(engine), original) if code in advice]
    if known:
        return advice[known[0]]
    if not is_denied(dialect_of(engine), original) or "row-level security" not in str(original):
        return None
    return "Let a login with BYPASSRLS read captured tables, best one of its own: source.reader."


def is_lasting(error: BaseException | None) -> bool:
    """Whether a driver's error has a number that waiting does not cure; PyMySQL has one class for
    deadlocks and typing errors.

    So has sqlite3, which tells the number apart from the text, with details in its higher bits. Who
    was turned away at the door will be turned away again: to try the same password for ever only
    locks the account.
    """
    said = str(error)
    # A server that refuses a connection for good is known by its words only.
    is_refused = "FATAL" in said or "no password supplied" in said
    if is_refused and any(words in said for dialect in dialects() for words in dialect.refusals):
        return True
    number = _number_of(error)
    passing = frozenset[int]().union(*(dialect.passing_errors for dialect in dialects()))
    return isinstance(number, int) and number > 0 and number not in passing


def is_locked(dialect: Dialect, error: BaseException | None) -> bool:
    """Whether a driver's error says that another process has locked the whole database."""
    return _number_of(error) in dialect.locked_errors


def is_held_up(dialect: Dialect, error: BaseException | None) -> bool:
    """Whether a driver's error says that somebody else holds a lock: what was begun can be tried again as it was."""
    return not _codes(error).isdisjoint(dialect.lock_codes | dialect.deadlock_codes) or is_locked(dialect, error)


def _said_first(error: BaseException | None) -> Any:
    return error.args[0] if error is not None and error.args else None


def _codes(error: BaseException | None) -> set[object]:
    """What a driver's error may be told by: its SQLSTATE, the code in what it says first, or the number that this is."""
    told = _said_first(error)
    return {getattr(error, "sqlstate", None), getattr(told, "code", None), told if isinstance(told, int) else None}


def _number_of(error: BaseException | None) -> object:
    told = (getattr(error, dialect.error_number, None) for dialect in dialects() if dialect.error_number)
    number = next((number for number in told if isinstance(number, int)), None)
    if number is not None:
        return number & 0xFF
    return _said_first(error)


def is_passing(dialect: Dialect, error: BaseException | None) -> bool:
    """Whether a driver's error has a code that waiting may cure, where the driver's class does not say so."""
    codes = _passing_codes(dialect, error)
    return not codes.isdisjoint(dialect.passing_codes) or bool(getattr(_said_first(error), "isrecoverable", False))


def _passing_codes(dialect: Dialect, error: BaseException | None) -> set[Any]:
    """What tells whether an error passes: its codes, and the one that the driver puts into words."""
    told = _said_first(error)
    codes = {getattr(told, name, None) for name in ("code", "full_code")} | {getattr(error, "sqlstate", None)}
    said = re.search(dialect.code_in_words, str(error)) if dialect.code_in_words else None
    return codes | ({int(said[1])} if said else set())


def is_denied(dialect: Dialect, error: BaseException | None) -> bool:
    """Whether a driver's error says that a right is missing."""
    return not _codes(error).isdisjoint(dialect.denied_codes)


def is_of_value(dialect: Dialect, error: BaseException | None) -> bool:
    """Whether a driver's error has a code that speaks of a value, where the driver's class does not say so."""
    return getattr(_said_first(error), "code", None) in dialect.value_codes
