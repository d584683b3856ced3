"""How statements reach a database: transactions with the session that reading needs, plain tuples.

And what an error means, which may be SQLAlchemy's or the driver's behind it: whether waiting cures
it, who has locked what, whether a right is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from eventlog.core.errors import EventlogError, SourceError, shorten
from eventlog.core.model import Reason
from eventlog.sql.dialect import OUR_FAULT, Dialect, dialect_of, dialects, statement
from eventlog.sql.error_codes import NAME_NEEDS_SCHEMA
from eventlog.sql.pooler import is_pooled

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import Dialect as Compiler
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.sql.elements import TextClause

IS_SET = "eventlog session"
"""What a connection's info holds when its session was prepared for good."""

UNFINISHED = "8s2b"
"""SQLAlchemy's code for a lost connection, of which its words do not speak."""

LOCKED = (
    "Another process has locked the database file and does not release it: `fuser` with the file's name says which."
)
"""The hint for a database that is a file, where one process that is frozen stops all others."""


@contextmanager
def transaction(
    engine: Engine, what: str, *, lone: bool = False, dialect: Dialect | None = None
) -> Iterator[Connection]:
    """Open a transaction in a session fit for reading; raise SourceError for the database's refusals.

    `lone` makes each statement a transaction of its own, where that costs less. Callers that begin
    many know the `dialect`.
    """
    dialect = dialect or dialect_of(engine)
    begun: AbstractContextManager[Connection]
    try:
        if lone and dialect.driver.lone_statements and not is_pooled(engine):
            begun = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        else:
            begun = engine.begin()
        with begun as connection:
            # LOBs are bound by a listener of this connection, which each transaction has anew.
            if IS_SET not in connection.info or dialect.driver.lob_parameters:
                prepare_session(connection, dialect)
            yield connection
    except driver_errors(engine) as error:
        raise explain_refusal(engine, what, error) from error


@contextmanager
def moment(engine: Engine, what: str) -> Iterator[Connection]:
    """Open a read-only transaction with one snapshot for all statements.

    For answers put together from several tables while others write them.
    """
    dialect = dialect_of(engine)
    with in_our_words(engine, what), engine.connect() as connection:
        prepare_session(connection, dialect)
        # Preparing reads, and what a transaction sees is decided before its first reading.
        connection.commit()
        for part in statements_of(dialect, "one_moment"):
            connection.exec_driver_sql(part)
        yield connection


def make_durable(connection: Connection, dialect: Dialect) -> None:
    """Make this transaction durable at commit, if the database lets a client choose.

    It only raises the session's setting.
    """
    if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
        raise EventlogError("A lone statement cannot be made durable.", hint=OUR_FAULT)
    if text := statement(dialect, "make_durable", durable=statement(dialect, "durable")):
        connection.exec_driver_sql(text)


def find_losses(connection: Connection, dialect: Dialect) -> list[tuple[str, str, str]]:
    """Find reasons for which a server may lose acknowledged commits, whatever `make_durable` does.

    Each finding has a level, a sentence and a correction.
    """
    text = statement(dialect, "durability")
    rows = connection.exec_driver_sql(text).all() if text else []
    return [(str(level), str(found), str(mend)) for level, found, mend in rows]


def prepare_session(connection: Connection, dialect: Dialect) -> None:
    """Have a session write values as reading needs them, where it is not prepared for good."""
    if IS_SET not in connection.info:
        for setting in statements_of(dialect, "session"):
            connection.exec_driver_sql(setting)
    if dialect.driver.lob_parameters:
        from eventlog.sql.longtext import bind_long_texts

        bind_long_texts(connection)


def statements_of(dialect: Dialect, query: str) -> list[str]:
    """Split a query into statements as drivers take them; `session` prepares for reading."""
    return [part for part in statement(dialect, query).split(";\n") if part]


@contextmanager
def in_our_words(engine: Engine, what: str) -> Iterator[None]:
    """Convert the database's errors inside to SourceError."""
    try:
        yield
    except driver_errors(engine) as error:
        raise explain_refusal(engine, what, error) from error


def explain_refusal(engine: Engine, what: str, error: Exception) -> SourceError:
    """Explain the database's refusal."""
    words = words_of(error)
    # Some drivers end with a question.
    message = f"{what} cannot be used: {words}{'' if words.endswith('?') else '.'}"
    return SourceError(message, hint=hint_of(engine, error), may_pass=may_pass(engine, error))


def in_words(error: SQLAlchemyError, doing: str) -> EventlogError:
    """Convert a database's error to ours, in one line: the statement and its values may be secret."""
    from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

    original = error.orig if isinstance(error, DBAPIError) else None
    # SQLAlchemy's own text of an error holds the statement and its values.
    words = str(error) if original is None else str(original)
    if error.code == UNFINISHED:
        words = words_of(error)
    first = type(error).__name__
    if words.strip():
        first = words.strip().splitlines()[0].rstrip(".")
    lasting = is_lasting(original) or has_wrong_value(error)
    passes = isinstance(error, OperationalError | InterfaceError) and not lasting
    hint = find_connection_hint(error) or find_advice(dialects(), original)
    if not hint and any(is_denied(dialect, original) for dialect in dialects()):
        doing = "A right is missing"
        check = "`eventlog check` names the rights that a publisher lacks."
        hint = f"`eventlog rights` grants what each role needs; {check}"
    return SourceError(f"{doing}: {first}.", hint=hint, may_pass=passes)


def fetch(
    connection: Connection,
    query: TextClause | str,
    parameters: Mapping[str, Any] | tuple[Any, ...] | None = None,
) -> list[tuple[Any, ...]]:
    """Fetch a query's rows straight from the driver."""
    # SQLAlchemy's rows, with names and converted values, cost half of the reading.
    try:
        if isinstance(query, str):
            result = connection.exec_driver_sql(query, parameters)
        elif (cursor := _send(connection, query, parameters)) is not None:
            rows = list(cursor.fetchall())
            cursor.close()
            return rows
        else:
            result = connection.execute(query, parameters)
        rows = list(result.cursor.fetchall())
        result.close()
        return rows
    except Exception as error:
        if "decode" not in str(error).lower() or not dialect_of(connection).driver.stores_any_bytes:
            raise
        session: Any = connection.connection.driver_connection
        # Then it was asked the second time.
        if session.text_factory is _any_text:
            raise
        # As lone surrogates such bytes reach the rules, which refuse the one row they are in.
        usual, session.text_factory = session.text_factory, _any_text
        try:
            return fetch(connection, query, parameters)
        finally:
            session.text_factory = usual


def execute(connection: Connection, query: TextClause, parameters: Mapping[str, Any] | None = None) -> int:
    """Run a statement without results; return the number of changed rows."""
    taken = _send(connection, query, parameters)
    if taken is None:
        taken = connection.execute(query, parameters)
    count = int(taken.rowcount)
    taken.close()
    return count


def _send(connection: Connection, query: TextClause, values: Any) -> Any:
    """Hand a statement to the driver; return its cursor, or None where only SQLAlchemy can run it.

    SQLAlchemy's own way costs four times as much. What the driver refuses is SQLAlchemy's to raise, who knows lost
    connections.
    """
    # SQLAlchemy would not know of a transaction that the driver begins.
    if not (connection.in_transaction() or connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"):
        return None
    kept = _spelled.setdefault(connection.dialect, {})
    spelling = kept.get(query.text) or _spell(connection.dialect, query, kept)
    if spelling is None:
        return None
    sql, names, has_places = spelling
    try:
        found = map((values or {}).__getitem__, names)
        values = tuple(found) if has_places else dict(zip(names, found, strict=True))
    except KeyError:
        return None  # a statement that brings values of its own
    session, cursor = connection.connection, None
    try:
        cursor = session.cursor()
        for listener in connection.dispatch.before_cursor_execute:
            sql, values = listener(connection, cursor, sql, values, None, False)
        cursor.execute(sql, values)
        for listener in connection.dispatch.after_cursor_execute:
            listener(connection, cursor, sql, values, None, False)
    except BaseException as error:
        # Who is interrupted leaves a connection on which half of an answer is still to come.
        if isinstance(error, connection.dialect.loaded_dbapi.Error) or not isinstance(error, Exception):
            connection._handle_dbapi_exception(error, sql, values, cursor, None)  # noqa: SLF001  # no other name
        raise
    return cursor


_Spelling = tuple[str, Sequence[str], bool]
"""How a driver takes a statement: SQL, the names of its values, and whether these go by place."""

_spelled: WeakKeyDictionary[Compiler, dict[str, _Spelling]] = WeakKeyDictionary()

MOST_SPELLINGS: Final = 1_000
"""So many statements are kept: some have values in their text, and there is no end of these."""


def _spell(compiler: Compiler, query: TextClause, kept: dict[str, _Spelling]) -> _Spelling | None:
    """Write a statement for the driver, cached; None if only SQLAlchemy can run it."""
    from sqlalchemy.types import NullType

    compiled: Any = query.compile(dialect=compiler)
    # Values of a type, or of lists, are SQLAlchemy's to write, and names that the driver knows by others.
    bound = compiled.binds.values()
    if compiled.escaped_bind_names or any(one.expanding or not isinstance(one.type, NullType) for one in bound):
        return None
    if len(kept) >= MOST_SPELLINGS:
        kept.clear()
    names = compiled.positiontup if compiled.positional else compiled.binds
    kept[query.text] = spelling = str(compiled), tuple(names), bool(compiled.positional)
    return spelling


def answers(
    connection: Connection,
    query: str,
    parameters: Mapping[str, Any] | None = None,
    /,
    **holes: str,
) -> Sequence[Any]:
    """Run a named query, if the database has one; fill its holes with SQL."""
    from sqlalchemy import text

    spelled = {hole: in_text(sql) for hole, sql in holes.items()}
    asked = statement(dialect_of(connection), query, **spelled)
    if not asked:
        return ()
    return connection.execute(text(asked), parameters).all()


def in_text(identifier: str) -> str:
    """Escape a quoted identifier for SQLAlchemy's text(), where a colon begins a parameter."""
    return identifier.replace(":", "\\:")


def verbatim(sql: str) -> TextClause:
    """Wrap SQL without parameters; colons and percent signs are literal."""
    from sqlalchemy import text

    return text(in_text(sql))


def run_verbatim(connection: Connection, sql: str) -> None:
    """Run SQL without parameters; nothing where the database needs no statement."""
    if sql:
        connection.execute(verbatim(sql))


def _any_text(stored: bytes) -> str:
    # What SQLite holds as text may be any bytes.
    return stored.decode("utf-8", "surrogateescape")


def driver_errors(engine: Engine) -> tuple[type[Exception], ...]:
    """List the exceptions of a refusing database."""
    from sqlalchemy.exc import SQLAlchemyError

    return (SQLAlchemyError, getattr(engine.dialect.loaded_dbapi, "Error", SQLAlchemyError))


def may_pass(engine: Engine, error: Exception) -> bool:
    """Return True if waiting may help: the connection, a lock or the server failed.

    The statement or the URL never gets better.
    """
    if has_wrong_value(error):
        return False
    original, drivers = _driver_error(error), engine.dialect.loaded_dbapi
    classes = (getattr(drivers, name, None) for name in ("OperationalError", "InterfaceError"))
    passes = isinstance(original, tuple(filter(None, classes)))
    # What is no driver's error comes from the pool: it waited for a connection and got none.
    if not isinstance(original, getattr(drivers, "Error", Exception)):
        passes = True
    if passes and not is_lasting(original):
        return True
    return is_passing(dialect_of(engine), original)


def words_of(error: BaseException) -> str:
    """Return a database's message in one line of limited length."""
    if getattr(error, "code", None) == UNFINISHED:
        return "the connection was lost in the middle of a transaction"
    return shorten(" ".join(str(_driver_error(error)).split()), 300).rstrip(".")


def _driver_error(error: BaseException | None) -> BaseException | None:
    """Return the driver's exception behind SQLAlchemy's."""
    return getattr(error, "orig", None) or error


class WrongValue(str):
    """The advice where options of the URL have a value that the driver refuses."""

    __slots__ = ()


def has_wrong_value(error: Exception) -> bool:
    """Return True if no connection can be made before somebody corrects the URL."""
    return isinstance(find_connection_hint(error), WrongValue)


def find_connection_hint(error: BaseException) -> str | None:
    """Return the hint noted by `connect` on a failed connection's error."""
    return next(iter(getattr(error, "__notes__", ())), None)


def hint_of(engine: Engine, error: BaseException) -> str | None:
    """Return the remedy, where one is known."""
    dialect = dialect_of(engine)
    if is_locked(dialect, error):
        return LOCKED
    if (note := find_connection_hint(error)) is not None:
        return note
    if (advice := find_advice([dialect], error)) is not None:
        return advice
    # A policy of a table's owner would have hidden rows from this login.
    if not is_denied(dialect, error) or "row-level security" not in str(_driver_error(error)):
        return None
    return "Let a login with BYPASSRLS read captured tables, best one of its own: source.reader."


def find_advice(dialects: Iterable[Dialect], error: BaseException | None) -> str | None:
    """Find the dialect's advice for an error's code."""
    for dialect in dialects:
        codes = _codes(dialect, error)
        for code in codes & dialect.errors.advice.keys():
            return dialect.errors.advice[code]
        # The statements of eventlog itself have a schema before each name.
        words = str(_driver_error(error)).partition("\n")[0]
        if codes & dialect.errors.name_codes and not re.search(r"\w\"?\.\"?\w", words):
            return NAME_NEEDS_SCHEMA
    return None


def is_lasting(error: BaseException | None) -> bool:
    """Return True if waiting does not cure the error, by its number."""
    # PyMySQL has one class for deadlocks and typing errors. So has sqlite3, which tells the number
    # apart from the text, with details in its higher bits.
    text_of_error = str(error)
    # A server that refuses a connection for good is known by its words only. Who was turned away at
    # the door will be turned away again: to try the same password for ever only locks the account.
    if "FATAL" in text_of_error or "no password supplied" in text_of_error:
        refusals = [words for dialect in dialects() for words in dialect.errors.refusals]
        if any(words in text_of_error for words in refusals):
            return True
    # What comes first in an error may be a text as well, or an object of the driver.
    number = _number_of(error)
    passing = frozenset[int]().union(*(dialect.errors.passing_errors for dialect in dialects()))
    return isinstance(number, int) and number > 0 and number not in passing


def is_locked(dialect: Dialect, error: BaseException | None) -> bool:
    """Return True if another process has locked the whole database."""
    return _number_of(_driver_error(error)) in dialect.errors.locked_errors


def is_held_up(dialect: Dialect, error: BaseException | None) -> bool:
    """Return True if somebody else holds a lock: the work can be tried again as it was."""
    lock_codes = dialect.errors.lock_codes | dialect.errors.deadlock_codes
    return not _codes(dialect, error).isdisjoint(lock_codes) or is_locked(dialect, error)


def _first_argument(error: BaseException | None) -> Any:
    if error is None or not error.args:
        return None
    return error.args[0]


def _codes(dialect: Dialect, error: BaseException | None) -> set[Any]:
    """Collect the codes of an error.

    Each driver has its own: an SQLSTATE, a number first, codes in the first argument, or one in the
    text.
    """
    original = _driver_error(error)
    first = _first_argument(original)
    codes: set[Any] = {getattr(first, name, None) for name in ("code", "full_code")}
    codes.add(getattr(original, "sqlstate", None))
    if isinstance(first, int):
        codes.add(first)
    number = getattr(original, dialect.errors.error_number or "", None)
    if isinstance(number, int):
        codes.add(number & 0xFF)  # SQLite has details in the higher bits
    if dialect.errors.code_in_words and (code := re.search(dialect.errors.code_in_words, str(original))):
        codes.add(int(code[1]))
    return codes


def _number_of(error: BaseException | None) -> object:
    for dialect in dialects():
        if dialect.errors.error_number is None:
            continue
        number = getattr(error, dialect.errors.error_number, None)
        if isinstance(number, int):
            return number & 0xFF  # SQLite has details in the higher bits
    return _first_argument(error)


def is_passing(dialect: Dialect, error: BaseException | None) -> bool:
    """Return True if waiting may cure the error, by its code."""
    if not _codes(dialect, error).isdisjoint(dialect.errors.passing_codes):
        return True
    return bool(getattr(_first_argument(_driver_error(error)), "isrecoverable", False))


def is_denied(dialect: Dialect, error: BaseException | None) -> bool:
    """Return True if a right is missing."""
    return not _codes(dialect, error).isdisjoint(dialect.errors.denied_codes)


def table_fault(dialect: Dialect, error: BaseException | None) -> Reason | None:
    """Return the reason a whole table is unreadable; None for another error."""
    codes = _codes(dialect, error)
    if not codes.isdisjoint(dialect.errors.denied_codes):
        return Reason.NO_RIGHT
    # A file that another process has locked is locked for the log too, and no table is at fault.
    if not codes.isdisjoint(dialect.errors.lock_codes | dialect.errors.deadlock_codes | dialect.errors.timeout_codes):
        return Reason.LOCKED
    if not codes.isdisjoint(dialect.errors.damage_codes):
        return Reason.DAMAGED
    return None


def is_of_value(dialect: Dialect, error: BaseException | None) -> bool:
    """Return True if the error's code speaks of a value, where its class does not say so."""
    return not _codes(dialect, error).isdisjoint(dialect.errors.value_codes)
