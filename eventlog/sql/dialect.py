"""What tells the databases apart: a frozen value for each with its constants and capabilities, and its named SQL.

Each database has a room, a folder beside this file, with its value, its SQL, its keys and its types. Nothing outside of
a room compares a database's name. Quoting is SQLAlchemy's, so that reserved words are as up to date as it is; it is
imported only when something is quoted.

Named SQL is loaded from the room: `statement(dialect, "waiting", log="event_log")`. A query begins with the line
`-- name: purpose` and goes on to the next such line; other comment lines are for its readers and are left out. A hole is
a comment of one word before the text it replaces, `/* log */event_log`, so that the file stays SQL which an editor can
check and a DBA can run. What databases share stands in `common`; a room has what is different there, and nothing for a
query that it has no use for.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.core.errors import ConfigError, EventlogError, InstallError, SourceError
from eventlog.core.sql_types import bare_type
from eventlog.sql.names import STANDARD, LogNames

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import URL
    from sqlalchemy.engine import Dialect as Compiler
    from sqlalchemy.exc import DBAPIError

    from eventlog.sql.column_types import ColumnTypes
    from eventlog.sql.lookup import KeyLookup
    from eventlog.sql.storage import Writing


PIECE_CHARACTERS: Final = 900
"""How long the pieces of a long text are: fewer than 4,000 bytes, whatever the characters."""

DDL_LOCK_SECONDS = 10
"""How long the making of tables and triggers waits for a lock: everybody who comes after it waits as well."""

OTHER_NAMES: Final = {"postgres": "eventlog.sql.postgresql.dialect:POSTGRESQL"}
"""How URLs begin that other tools write, and SQLAlchemy does not know."""

_ROOMS: Final = {
    **OTHER_NAMES,
    "sqlite": "eventlog.sql.sqlite.dialect:SQLITE",
    "postgresql": "eventlog.sql.postgresql.dialect:POSTGRESQL",
    "oracle": "eventlog.sql.oracle.dialect:ORACLE",
    "mysql": "eventlog.sql.mysql.dialect:MYSQL",
    "mariadb": "eventlog.sql.mysql.dialect:MYSQL",
}
"""The databases by how their URLs begin; a room is only imported when its database is opened."""


class Dialect(Struct, frozen=True, kw_only=True, eq=False):
    """One database, of which there is one value. The folder called `name` holds what belongs to it; expressions are SQL text in its own words."""

    name: str
    lookup: KeyLookup
    """How its rows are looked up by their keys, and stand in the order of them."""
    types: ColumnTypes
    """The types of columns that eventlog makes there."""
    stored: Writing | None = None
    driver: str | None = None
    """The module of the driver that the extra brings; None where Python brings one."""
    extra: str | None = None
    identifier_bytes: int
    case_sensitive: bool = False
    """Whether undelimited identifiers are."""
    oldest_server: tuple[int, ...] = ()
    """The oldest version that the tests run on; empty where only one was tried."""
    quick_glue: str = ", "
    """What stands between the values of a row in the database's quick hash, where it has one."""
    embedded: bool = False
    """The database is a file of this machine, which connecting would make."""
    lone_writer: bool = False
    """One transaction writes at a time; others wait for it."""
    schemas: bool = True
    """Tables stand in schemas; elsewhere the setting `source.schema` names one in associations."""
    transition_tables: bool = False
    """Statement triggers see all rows of their statement."""
    truncate_triggers: bool = False
    cascades_fire_triggers: bool = True
    """Rows that a foreign key deletes or changes fire the triggers of their table."""
    open_catalog: bool = False
    """The catalog describes tables also to who has no right on them."""
    hides_virtual_columns: bool = False
    """A trigger cannot read a column that is computed when it is read; its formula stands for it."""
    instead_of_triggers: bool = False
    qualified_in_triggers: bool = True
    """A trigger's text may name the schema of the tables it writes to."""
    triggers_in_schemas: bool = False
    """A trigger's own name may have a schema; elsewhere it goes with its table."""
    comments_on_triggers: bool = False
    """The marker is a comment beside the trigger; elsewhere it is one in the trigger's text."""
    tells_roughly: bool = False
    """The catalog may tell a trigger's text with a quote once that is there twice, and '?' for characters beyond 16 bits."""
    procedural_triggers: bool = False
    """One trigger stands for all events and is replaced in place; its conditions hold no queries, so those are asked
    before; and it must not look at a table that the same statement changes."""
    unseen_types: frozenset[str] = frozenset()
    """Types of columns whose values a trigger cannot read; they are read back."""
    untaught_types: frozenset[str] = frozenset()
    """Types with arguments that SQLAlchemy may not know."""
    type_texts: Mapping[str, str] = {}
    """Types whose text is written by a fragment of their own."""
    passing_codes: frozenset[int | str] = frozenset()
    """Codes of errors that waiting may cure, where the driver's class does not say so."""
    advice: Mapping[int | str, str] = {}
    """What mends an error, or when it passes, by its code."""
    code_in_words: str | None = None
    """A regular expression for the code in what an error says, where the driver has a number of its own for it."""
    denied_codes: frozenset[int | str] = frozenset()
    """Codes of errors that a right would cure."""
    lob_parameters: bool = False
    """A text longer than the longest string must be bound as a LOB."""
    reserved: frozenset[str] = frozenset()
    """Words that need quotes in the language of triggers, besides those of SQL."""
    untaught_words: frozenset[str] = frozenset()
    """Words that newer servers reserve and SQLAlchemy may not know, in lower case as it has them."""
    next_number: str | None = None
    """The next number of a sequence, where a log may have one instead of numbering its rows itself."""
    trigger_bytes: int | None = None
    """How long a trigger's text may be."""
    long_text: str | None = None
    """Makes a text of any length from a string, where strings may not be as long."""
    line_characters: int | None = None
    """How long a line of a script may be."""
    upper_case: bool = False
    """Names that nobody quotes are upper-case."""
    row_names: tuple[str, str] = ("OLD", "NEW")
    """What a row trigger calls the row before and after."""
    concat: tuple[str, str, str] = ("", " || ", "")
    """What stands before, between and after texts that are joined."""
    script_end: str = ";"
    """Ends a statement in a script, also one that has semicolons inside."""
    declared_constants: bool = False
    """A trigger may declare constants in the types of a table's columns, which conditions and rows then share."""
    partial_indexes: bool = False
    waiting_number: str | None = None
    """The number of a row that waits, and NULL of all others, which an index leaves out: where there are no partial indexes."""
    log_has_key: bool = True
    """Whether the log we make has a primary key; without one, uniqueness rests on the identity (measured on PostgreSQL)."""
    transactional_ddl: bool = False
    begin_ddl: str | None = None
    """Opens a transaction where the driver would let DDL run outside of one."""
    ddl_limits: tuple[str, str] = ("", "")
    """Bounds the waiting for locks of what follows, and takes that back where the end of the transaction does not."""
    comments_survive: bool = True
    """A comment in a trigger's text stays there, whatever client made it; elsewhere the marker is a statement."""
    script_commit: str = ""
    """Ends a script whose last statements are not on disk yet."""
    script_head: str = ""
    """Begins every script: the database's shell ends with the first error, and waits for locks as the program does."""
    script_start: str = ""
    """Begins a script, where the database's shell must be told how its statements end."""
    checks_identity: bool = True
    """A CHECK may speak of a column that numbers itself."""
    passing_errors: frozenset[int] = frozenset()
    """Numbers of the errors that waiting may cure, where the driver's classes do not tell them from the others."""
    locked_errors: frozenset[int] = frozenset()
    """Those of them that say that another process has locked the whole database."""
    constant_ranges: bool = False
    """Ranges of an index are found by constants only, and not by what another table says."""
    lock_codes: frozenset[int | str] = frozenset()
    """Codes of the error that says that a lock did not come in time."""
    deadlock_codes: frozenset[int | str] = frozenset()
    """Codes of the error that says that two waited for each other, and that one of them was sent away."""
    value_codes: frozenset[int] = frozenset()
    """Codes of errors that are about a value, where the driver's class does not say so."""
    error_number: str | None = None
    """The attribute in which a driver's error tells its number, where it does not come first of what the error says."""
    stores_any_bytes: bool = False
    """A text may be any bytes, at which the driver stumbles unless it is told not to."""
    copying_driver: str | None = None
    """The driver through which rows can be had by COPY."""
    lone_statements: bool = False
    """Statements that are transactions of their own are two round trips cheaper than one in a transaction."""
    fetch_at_once: Callable[..., list[tuple[Any, ...]]] | None = None
    """Reads what a lone statement finds without holding up other threads."""
    refusals: tuple[str, ...] = ()
    """Words with which a server turns somebody away at its door, where its driver has no number for that."""
    latin_driver: str | None = None
    """A driver that would send a password in Latin-1 to a server that keeps it in UTF-8."""
    url_options: Callable[[Iterable[str]], set[str]] | None = None
    """All options of the extra's driver behind `?` in a URL, of those that it may have; None where its parameters tell them."""
    login_package: str | None = None
    """What a driver may need besides itself to log in."""
    connect_arguments: Mapping[str, int] = {}
    """What keeps a connection that nobody answers on from being waited for, in the words of the driver."""
    lease_arguments: Mapping[str, float] = {}
    """Which of those are shorter with a short lease, and how much of them there is to a second of it."""
    answer_argument: str | None = None
    """What the driver calls the seconds after which it no longer waits for an answer."""
    program_argument: str | None = None
    """What the extra's driver calls the program of a session, where its connect takes one."""
    names_sessions: bool = False
    """The driver says of a session which program it is, and what that does, where a DBA looks at sessions."""
    limits_calls: bool = False
    """The driver ends a call that takes too long, where a session limits neither statements nor locks."""
    now: str
    """The current time as event_time holds it: UTC wherever the database can say it."""
    later: str = "({now} + INTERVAL '{seconds}' SECOND)"
    """A time, so many seconds later."""
    user: str = "NULL"
    """Who is connected, as perpetrator holds it."""
    transaction: str | None = None
    """The number of the transaction that runs, the whole one whatever savepoints it has; None where nobody can say it."""
    transaction_guess: str | None = None
    """What is told of a row's transaction where the log has no column for it, in words; None where nothing is."""
    backslash: tuple[str, str] | None = ("'", "\\")
    """How a string that holds a backslash begins, and how the backslash is written in it; None: the session decides."""
    plain_types: frozenset[str] | None = None
    """Types whose values differ exactly when their texts do, others being compared as text; None: all of them."""
    unquoted_types: frozenset[str] = frozenset()
    """Types whose text never needs quotes in a table_key."""
    settled_types: frozenset[str] = frozenset()
    """Types whose text does not depend on the session's settings; a trigger on others brings settings of its own."""

    @property
    def domains(self) -> bool:
        """Types may have conditions of their own, which cost a writer a twentieth of what a table's CHECK costs (measured)."""
        return self.types.domain is not None

    def marked(self, marker: str) -> str:
        """The marker as it stands beside a trigger, or inside one."""
        if self.comments_on_triggers:
            return self.literal(marker)
        return f"/* {marker} */" if self.comments_survive else f"DO 'eventlog {b64encode(marker.encode()).decode()}';"

    def told(self, source: str) -> str:
        """A trigger's text such that the one that was sent and the one that the catalog tells are the same."""
        return re.sub("'+", "'", re.sub("[^\0-\uffff]", "?", source)) if self.tells_roughly else source

    def quoted(self, name: str) -> str:
        """The identifier as it stands in SQL, in quotes where it needs them."""
        if name.upper() in self.reserved:
            return f'"{name.upper() if name.islower() else name}"'
        preparer = _compiler(self.name).identifier_preparer
        if name.lower() in self.untaught_words:
            return preparer.quote_identifier(name)
        return preparer.quote(self.normalised(name) if name.isupper() else name)

    def beside(self, name: str, neighbour: str) -> str:
        """A name of ours in the case of the name that it stands beside."""
        return name.upper() if self.upper_case and neighbour.isupper() else name

    def on_lines(self, parts: Iterable[str], between: str) -> str:
        """The parts on one line, or on one each where that line would be too long for the database's shell."""
        line = between.join(parts := list(parts))
        if self.line_characters is None or len(line) < self.line_characters // 4:
            return line
        return f"{between.rstrip()}\n".join(parts)

    def unseen(self, sql_type: str) -> bool:
        return bare_type(sql_type) in self.unseen_types

    def qualified(self, schema: str | None, name: str) -> str:
        """A table's name as it stands in SQL, with its schema if there is one."""
        return f"{self.quoted(schema)}.{self.quoted(name)}" if schema else self.quoted(name)

    def literal(self, text: str) -> str:
        """The text as a SQL string, whatever the session thinks of backslashes."""
        if self.backslash is None and "\\" in text:
            return f"CONVERT(X'{text.encode().hex()}' USING utf8mb4)"
        opening, backslash = self.backslash if self.backslash and "\\" in text else ("'", "\\")
        return opening + text.replace("'", "''").replace("\\", backslash) + "'"

    def long_literal(self, text: str) -> str:
        """The text as a SQL expression, in pieces where a string and a line of a script may not be as long."""
        if self.long_text is None or len(text) <= PIECE_CHARACTERS:
            return self.literal(text)
        starts = range(0, len(text), PIECE_CHARACTERS)
        pieces = (self.literal(text[start : start + PIECE_CHARACTERS]) for start in starts)
        return "\n|| ".join(self.long_text.format(text=piece) for piece in pieces)

    def reported(self, name: str) -> str:
        """The name as the database itself reports it, which is how it stands in a table_key."""
        compiler = _compiler(self.name)
        return compiler.denormalize_name(name) if compiler.requires_name_normalize else name

    def normalised(self, name: str) -> str:
        """The name as SQLAlchemy wants it for one that the database reports; undoes `reported`."""
        compiler = _compiler(self.name)
        return compiler.normalize_name(name) if compiler.requires_name_normalize else name

    def shortened(self, name: str) -> str:
        """The name, or a part of it with a hash of all of it where the database limits the length."""
        if len(name.encode()) <= self.identifier_bytes:
            return name
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        kept = name.encode()[: self.identifier_bytes - 9].decode(errors="ignore")
        return f"{kept}_{digest}"


def dialect_of(where: str | URL | Engine | Connection) -> Dialect:
    """The dialect of a database by its URL, engine or connection; ConfigError when it is none that eventlog knows."""
    place: Any = where
    if not isinstance(where, str):
        place = place.dialect.name if hasattr(place, "dialect") else place.drivername
    backend = place.partition("://")[0].partition("+")[0]
    if backend not in _ROOMS:
        known = ", ".join(sorted(_ROOMS))
        raise ConfigError(f"eventlog does not know the database {backend!r}; the URL begins with one of {known}.")
    return _value(_ROOMS[backend])


def dialects() -> tuple[Dialect, ...]:
    """Every database that eventlog knows."""
    return tuple([_value(place) for place in dict.fromkeys(_ROOMS.values())])


def drivers() -> dict[str, str]:
    """The extras that bring drivers, by the module of the driver."""
    return {one.driver: one.extra for one in dialects() if one.driver is not None and one.extra is not None}


@cache
def _value(place: str) -> Dialect:
    found: Dialect = resolve_name(place)
    return found


@contextmanager
def ddl_transaction(engine: Engine) -> Iterator[Connection]:
    """A connection whose changes, DDL too, become visible together at the end, as far as the database can do that.

    It waits for a table for DDL_LOCK_SECONDS: whoever writes to the table queues behind it meanwhile.
    """
    from sqlalchemy.exc import DBAPIError

    dialect = dialect_of(engine)
    limit, unlimit = dialect.ddl_limits
    with engine.begin() as connection:
        if dialect.begin_ddl and not getattr(connection.connection.driver_connection, "in_transaction", False):
            connection.exec_driver_sql(dialect.begin_ddl)
        if limit:
            connection.exec_driver_sql(limit.format(seconds=DDL_LOCK_SECONDS))
        try:
            yield connection
        except DBAPIError as error:
            raise _in_use(dialect, error) or error from error
        finally:
            if unlimit:
                connection.exec_driver_sql(unlimit)


def _in_use(dialect: Dialect, error: DBAPIError) -> SourceError | None:
    """What is said when a lock did not come in time."""
    told = error.orig
    codes = {getattr(told, "sqlstate", None), told.args[0] if told is not None and told.args else None}
    if codes.isdisjoint(dialect.lock_codes):
        return None
    message = f"Somebody works with the table, and the lock on it did not come within {DDL_LOCK_SECONDS} s."
    return SourceError(message, hint="Try again when long transactions have ended: nothing was changed.")


@cache
def _compiler(name: str) -> Compiler:
    from sqlalchemy.engine import make_url

    # Named parameters have no percent sign, so that names keep theirs; `text()` doubles it where a driver wants that.
    kind: Callable[..., Compiler] = make_url(f"{name}://").get_dialect()
    return kind(paramstyle="named")


COMMON: Final = "common"
"""The folder of what databases share."""

OUR_FAULT: Final = "That is a fault of eventlog; please report it."

BODY_QUOTE: Final = "$eventlog$"
"""What stands on both sides of what a database keeps as a text: nothing that is filled in may end it."""

_header = re.compile(r"^-- ([a-z][a-z0-9_]*): .+$", re.MULTILINE)
_comment_line = re.compile(r"^\s*--.*\n?", re.MULTILINE)
_sample = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|:?[\w$.]+|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"""
_hole = re.compile(rf"/\*\s*([a-z][a-z0-9_]*)\s*\*/(?:{_sample})?")


def statement(dialect: Dialect, query: str, **holes: str) -> str:
    """The text of a named query with its holes filled; values that fill a hole are SQL already, and names quoted.

    No text for a query that this database lacks and another one has; `offers` asks for that.
    """
    text = texts(dialect.name).get(query)
    if text is None:
        if query not in known():
            raise EventlogError(f"There is no query {query} in eventlog/sql.", hint=OUR_FAULT)
        return ""
    return filled(text, holes, origin=f"{dialect.name}/{query}")


def offers(dialect: Dialect, query: str) -> bool:
    return query in texts(dialect.name)


def filled(text: str, holes: Mapping[str, str], *, origin: str) -> str:
    """The text with every hole replaced, sample and all; a hole that nothing fills is an error."""
    if BODY_QUOTE in text and any(BODY_QUOTE in value for value in holes.values()):
        raise InstallError(
            f"A name or a condition holds {BODY_QUOTE}, which would end the text of a trigger.", hint="Change it."
        )

    pieces = _hole.split(text)
    try:
        pieces[1::2] = [holes[name] for name in pieces[1::2]]
    except KeyError as missing:
        problem = f"{origin} has the hole {missing.args[0]} and nothing to fill it with."
        raise EventlogError(problem, hint=OUR_FAULT) from None
    return "".join(pieces)


def log_holes(dialect: Dialect, names: LogNames) -> dict[str, str]:
    """What fills the holes that nearly every query has: log, outcomes, marks, and the ten columns by standard name."""
    tables = {"log": names.table, "outcomes": names.outcomes, "marks": names.marks, "history": names.history}
    qualified = {hole: dialect.qualified(names.schema, table) for hole, table in (tables | names.journal).items()}
    own = {} if names.transaction is None else {"transaction_number": dialect.quoted(names.transaction)}
    columns = {standard: dialect.quoted(names.column(standard)) for standard in STANDARD}
    is_ours = names.transaction is not None  # such a log has an index of waiting rows alone, where there may be one
    numbers = {
        f"{alias}_number": waiting_number(dialect, names, f"{alias}.")
        if is_ours
        else f"{alias}.{dialect.quoted(names.column('record_id'))}"
        for alias in ("waiting", "late")
    }
    return qualified | own | numbers | columns


def waiting_number(dialect: Dialect, names: LogNames, alias: str = "") -> str:
    """The number of a waiting row as the index of waiting rows has it."""
    status, number = (alias + dialect.quoted(names.column(column)) for column in ("status", "record_id"))
    return (dialect.waiting_number or "{record_id}").format(status=status, record_id=number)


def transaction_behind(dialect: Dialect, holes: Mapping[str, str]) -> str:
    """What asks for the transaction of a row behind its other columns: nothing, where the log has no column for it."""
    return statement(dialect, "transaction_told", **holes) if "transaction_number" in holes else ""


def number_holes(dialect: Dialect, names: LogNames) -> dict[str, str]:
    """What a writer says of the record_id: nothing, unless a sequence numbers the log."""
    if names.sequence is None or dialect.next_number is None:
        return {"number_name": "", "number": ""}
    drawn = dialect.next_number.format(sequence=dialect.qualified(names.schema, names.sequence))
    return {"number_name": f", {dialect.quoted(names.column('record_id'))}", "number": f", {drawn}"}


@cache
def texts(database: str) -> dict[str, str]:
    """Every query of a database by name: those of its folder, and of `common` what the folder has not."""
    return _in_folder(COMMON) | _in_folder(database)


@cache
def known() -> frozenset[str]:
    """The names of all queries that any database has."""
    return frozenset().union(*(_in_folder(folder.name) for folder in _folders()))


def _folders() -> Iterator[Traversable]:
    for folder in files("eventlog.sql").iterdir():
        if folder.is_dir() and any(file.name.endswith(".sql") for file in folder.iterdir()):
            yield folder


@cache
def _in_folder(folder: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted(files("eventlog.sql").joinpath(folder).iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".sql"):
            continue
        for name, text in split(file.read_text(encoding="utf-8")):
            if name in found:
                raise EventlogError(f"The query {name} is twice in eventlog/sql/{folder}/.", hint=OUR_FAULT)
            found[name] = text
    return found


def split(text: str) -> Iterator[tuple[str, str]]:
    """Name and text of each query in a file, without comment lines and the semicolon at the end."""
    headers = list(_header.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    for header, end in zip(headers, ends, strict=True):
        body = _comment_line.sub("", text[header.end() : end]).strip()
        # A slash on the last line ends PL/SQL, whose own semicolons belong to it.
        yield header[1], body[:-2].rstrip() if body.endswith("\n/") else body.removesuffix(";").rstrip()
