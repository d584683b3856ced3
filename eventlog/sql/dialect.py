"""What tells the databases apart: a frozen value for each with its constants and capabilities, and
its named SQL.

A database comes in by the entry points `eventlog.databases`, under the word with which its URLs
begin. It has a room, a folder with its value, its SQL, its keys and its types; ours stand in
`eventlog.databases`. Nothing outside of a room compares a database's name. Quoting is SQLAlchemy's,
so that reserved words are as up to date as it is; it is imported only when something is quoted.

Named SQL is loaded from the room: `statement(dialect, "waiting", log="event_log")`. A query begins
with the line `-- name: purpose` and goes on to the next such line; other comment lines are for its
readers and are left out. A hole is a comment of one word before the text it replaces,
`/* log */event_log`, so that the file stays SQL which an editor can check and a DBA can run. What
databases share stands in `common`, beside this file; a room has what is different there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.core.errors import ConfigError, EventlogError, InstallError
from eventlog.core.registry import database_named, problem
from eventlog.core.registry import names as names_offered
from eventlog.core.registry import offers as offered
from eventlog.core.suggest import nearest
from eventlog.sql.ddl import Ddl
from eventlog.sql.driver import DatabaseDriver
from eventlog.sql.error_codes import ErrorCodes
from eventlog.sql.names import DIGITS, STANDARD, LogNames, hash_name, with_hash

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import URL
    from sqlalchemy.engine import Dialect as Compiler
    from sqlalchemy.sql import ClauseElement

    from eventlog.sql.column_types import ColumnTypes
    from eventlog.sql.lookup import KeyLookup


DDL_LOCK_SECONDS = 2
"""How long making tables and triggers waits for a lock: all who come after it wait as well."""


class Dialect(Struct, frozen=True, kw_only=True, eq=False):
    """One database, of which there is one value; expressions are SQL text in its own words."""

    name: str
    """How SQLAlchemy calls it."""
    room: str
    """The package of its folder, which has its SQL."""
    lookup: KeyLookup
    """How its rows are looked up by their keys, and stand in the order of them."""
    types: ColumnTypes
    """The types of columns that eventlog makes there."""
    driver: DatabaseDriver = DatabaseDriver()
    ddl: Ddl = Ddl()
    errors: ErrorCodes = ErrorCodes()
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
    open_catalog: bool = False
    """The catalog describes tables also to who has no right on them."""
    typed_columns: bool = True
    """A column says of what type its values are, and how long."""
    type_texts: Mapping[str, str] = {}
    """Types whose text is written by a fragment of their own."""
    key_texts: Mapping[str, str] = {}
    """Those of them whose text in a key is another one."""
    reserved: frozenset[str] = frozenset()
    """Words that need quotes in the language of triggers, besides those of SQL."""
    upper_case: bool = False
    """Names that nobody quotes are upper-case."""
    concat: tuple[str, str, str] = ("", " || ", "")
    """What stands before, between and after texts that are joined."""
    constant_ranges: bool = False
    """Ranges of an index are found by constants only, and not by what another table says."""
    now: str
    """The current time as event_time holds it: UTC wherever the database can say it."""
    later: str = "({now} + INTERVAL '{seconds}' SECOND)"
    """A time, so many seconds later."""
    user: str = "NULL"
    """Who is connected, as perpetrator holds it."""
    transaction: str | None = None
    """The number of the running transaction, whatever savepoints it has; None: unknown."""
    context: str = "NULL"
    """What a session says of who is behind its changes, never longer than the log's column; `{sessions}` is
    the table that says it where sessions have no variables.
    """
    transaction_guess: str | None = None
    """What is known of a row's transaction where the log has no column for it, in words."""
    backslash: tuple[str, str] | None = ("'", "\\")
    """How a string with a backslash begins, and its backslash; None: the session decides."""
    plain_types: frozenset[str] | None = None
    """Types whose values differ just when their texts do; None: all. Others compare as text."""
    unquoted_types: frozenset[str] = frozenset()
    """Types whose text never needs quotes in a table_key."""

    def quote(self, name: str) -> str:
        """Write an identifier in SQL, in quotes where it needs them."""
        if name.upper() in self.reserved:
            # A name in lower case means what nobody quotes, which is upper case there.
            return f'"{name.upper() if name.islower() else name}"'
        preparer = _compiler(self.name).identifier_preparer
        if name.lower() in self.driver.untaught_words:
            return preparer.quote_identifier(name)
        return preparer.quote(self.normalise_name(name) if name.isupper() else name)

    def beside(self, name: str, neighbour: str) -> str:
        """Write a name of ours in the case of its neighbour."""
        return name.upper() if self.upper_case and neighbour.isupper() else name

    def trigger_name(self, schema: str | None, name: str) -> str:
        """Name a trigger: with its table's schema, unless implied by the table."""
        return self.qualify(schema if self.ddl.triggers_in_schemas else None, name)

    def qualify(self, schema: str | None, name: str) -> str:
        """Write a table's name in SQL, with its schema if there is one."""
        return f"{self.quote(schema)}.{self.quote(name)}" if schema else self.quote(name)

    def literal(self, text: str) -> str:
        """Write text as a SQL string, whatever the session thinks of backslashes."""
        if self.backslash is None and "\\" in text:
            return f"CONVERT(X'{text.encode().hex()}' USING utf8mb4)"
        opening, backslash = self.backslash if self.backslash and "\\" in text else ("'", "\\")
        return opening + text.replace("'", "''").replace("\\", backslash) + "'"

    def write(self, element: ClauseElement) -> str:
        """Write a statement that SQLAlchemy has put together from expressions of this database."""
        return str(element.compile(dialect=_compiler(self.name)))

    def report_name(self, name: str) -> str:
        """Return the name as the database reports it: so it is in a table_key."""
        compiler = _compiler(self.name)
        return compiler.denormalize_name(name) if compiler.requires_name_normalize else name

    def column_name(self, name: str) -> str:
        """Return the database's name of a column, from SQLAlchemy's."""
        return self.report_name(
            name.replace(self.driver.doubled_sign * 2, self.driver.doubled_sign) if self.driver.doubled_sign else name
        )

    def normalise_name(self, name: str) -> str:
        """Return SQLAlchemy's name for a reported one; undoes `report_name`."""
        compiler = _compiler(self.name)
        return compiler.normalize_name(name) if compiler.requires_name_normalize else name

    def shorten_name(self, name: str) -> str:
        """Return the name, or a part with a hash of all of it where the database limits the length.

        Where names are in capitals, one that would have to be quoted becomes one that need not be.
        """
        if not self.upper_case or _unquoted(name):
            return with_hash(name, self.identifier_bytes)
        beginning = re.sub(r"[^A-Z0-9_$]", "_", name.upper())[: self.identifier_bytes - DIGITS - 1]
        return f"{beginning}_{hash_name(name).upper()}"


def dialect_of(where: str | URL | Engine | Connection) -> Dialect:
    """Find the dialect of a database by its URL, engine or connection; raise ConfigError if unknown."""
    name: Any = where
    if not isinstance(where, str):
        name = name.dialect.name if hasattr(name, "dialect") else name.drivername
    # Without the driver, which stands behind a plus.
    backend = name.partition("://")[0].partition("+")[0]
    return _load_dialect(backend)


@cache
def _load_dialect(backend: str) -> Dialect:
    known = names_offered("databases")
    if backend not in known:
        begins = f"the URL begins with one of {', '.join(known)}"
        meant = nearest(backend, known)
        hint = f"Did you mean {meant}?" if meant else None
        raise ConfigError(f"eventlog does not know the database {backend!r}; {begins}.", hint=hint)
    dialect: Dialect = database_named(backend)
    return dialect


def dialects() -> tuple[Dialect, ...]:
    """Load the dialect of every usable database."""
    usable = [_load_dialect(offer.name) for offer in offered("databases") if problem(offer) is None]
    # Some are offered under several names.
    return tuple({dialect.name: dialect for dialect in usable}.values())


def drivers() -> dict[str, str]:
    """Map drivers' modules to their extras."""
    return {
        dialect.driver.module: dialect.driver.extra
        for dialect in dialects()
        if dialect.driver.module and dialect.driver.extra
    }


@cache
def _compiler(name: str) -> Compiler:
    from sqlalchemy.engine import make_url

    # Named parameters have no percent sign, so names keep theirs; `text()` doubles it if needed.
    kind: Callable[..., Compiler] = make_url(f"{name}://").get_dialect()
    return kind(paramstyle="named")


COMMON: Final = "eventlog.sql.common"
"""The folder of what databases share."""
OUR_FAULT: Final = "That is a fault of eventlog; please report it."
BODY_QUOTE: Final = "$eventlog$"
"""What stands round what a database keeps as a text: nothing that is filled in may end it."""

_unquoted = re.compile(r"[a-z][a-z0-9_$]*|[A-Z][A-Z0-9_$]*").fullmatch
_header = re.compile(r"^-- ([a-z][a-z0-9_]*): .+$", re.MULTILINE)
_comment_line = re.compile(r"^\s*--.*\n?", re.MULTILINE)
_sample = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|:?[\w$.]+|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"""
_hole = re.compile(rf"/\*\s*([a-z][a-z0-9_]*)\s*\*/(?:{_sample})?")


def statement(dialect: Dialect, query: str, **holes: str) -> str:
    """Fill the holes of a named query with SQL.

    Empty for a query this database lacks and another has; `offers` tells.
    """
    text = texts(dialect).get(query)
    if text is None:
        if query not in list_known_queries():
            raise EventlogError(f"No database has a query {query}.", hint=OUR_FAULT)
        return ""
    return fill_holes(text, holes, origin=f"{dialect.name}/{query}")


PIECE_CHARACTERS: Final = 900
"""How long the pieces of a long text are: fewer than 4,000 bytes, whatever the characters."""


def long_literal(dialect: Dialect, text: str) -> str:
    """Write a text as a SQL expression, in pieces where no string or line may be as long."""
    if dialect.ddl.long_text is None or len(text) <= PIECE_CHARACTERS:
        return dialect.literal(text)
    starts = range(0, len(text), PIECE_CHARACTERS)
    pieces = (dialect.literal(text[start : start + PIECE_CHARACTERS]) for start in starts)
    return "\n|| ".join(dialect.ddl.long_text.format(text=piece) for piece in pieces)


def offers(dialect: Dialect, query: str) -> bool:
    return query in texts(dialect)


def fill_holes(text: str, holes: Mapping[str, str], *, origin: str) -> str:
    """Replace every hole in the text, sample and all; raise an error for a hole without a value."""
    if BODY_QUOTE in text and any(BODY_QUOTE in value for value in holes.values()):
        problem = f"A name or a condition holds {BODY_QUOTE}"
        raise InstallError(f"{problem}, which would end the text of a trigger.", hint="Change it.")
    pieces = _hole.split(text)
    try:
        pieces[1::2] = [holes[name] for name in pieces[1::2]]
    except KeyError as missing:
        problem = f"{origin} has the hole {missing.args[0]} and nothing to fill it with."
        raise EventlogError(problem, hint=OUR_FAULT) from None
    return "".join(pieces)


@lru_cache(maxsize=100)
def log_holes(dialect: Dialect, names: LogNames) -> MappingProxyType[str, str]:
    """Fill the holes of nearly every query: the log, its companions and columns."""
    places = {"log": names.table, **names.companions}
    holes = {hole: dialect.qualify(names.schema, table) for hole, table in places.items()}
    # The registry's table of triggers, as the catalog is asked about it.
    holes["registry"] = dialect.literal(holes["triggers"])
    holes["log_schema"] = dialect.literal(names.schema) if names.schema else statement(dialect, "home_schema")
    for alias in ("waiting", "late"):
        holes[f"{alias}_number"] = f"{alias}.{dialect.quote(names.column('record_id'))}"
        if names.transaction is not None:
            # A log of ours has an index of waiting rows alone, where there may be one.
            holes[f"{alias}_number"] = waiting_number(dialect, names, f"{alias}.")
            holes["transaction_number"] = dialect.quote(names.transaction)
    if names.context is not None:
        holes["context_column"] = dialect.quote(names.context)
    if names.origin is not None:
        holes["origin"] = dialect.quote(names.origin)
    holes |= {standard: dialect.quote(names.column(standard)) for standard in STANDARD}
    own = {name: statement(dialect, name, **holes) for name in ("each_half", "processed", "schema_of_class")}
    return MappingProxyType(holes | own)


def waiting_number(dialect: Dialect, names: LogNames, alias: str = "") -> str:
    """Write the number of a waiting row as the index of waiting rows has it."""
    status = alias + dialect.quote(names.column("status"))
    number = alias + dialect.quote(names.column("record_id"))
    return (dialect.ddl.waiting_number or "{record_id}").format(status=status, record_id=number)


@cache
def texts(dialect: Dialect) -> dict[str, str]:
    """Load every query of a database by name: its folder's, and of `common` the remaining ones."""
    return _in_folder(COMMON) | _in_folder(dialect.room)


@cache
def list_known_queries() -> frozenset[str]:
    """Name all queries of any of our databases."""
    # From the folders alone: other databases are not imported for it.
    ours = [offer.points[0] for offer in offered("databases") if offer.is_ours]
    rooms = {point.module.rpartition(".")[0] for point in ours}
    return frozenset().union(*map(_in_folder, (COMMON, *rooms)))


@cache
def _in_folder(package: str) -> dict[str, str]:
    queries: dict[str, str] = {}
    for file in sorted(files(package).iterdir(), key=attrgetter("name")):
        if not file.name.endswith(".sql"):
            continue
        for name, text in split(file.read_text(encoding="utf-8")):
            if name in queries:
                problem = f"The query {name} is twice in the files of {package}."
                raise EventlogError(problem, hint=OUR_FAULT)
            queries[name] = text
    return queries


def split(text: str) -> Iterator[tuple[str, str]]:
    """Name and text of each query in a file, without comment lines and the semicolon at the end."""
    headers = list(_header.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    for header, end in zip(headers, ends, strict=True):
        body = _comment_line.sub("", text[header.end() : end]).strip()
        # A slash on the last line ends PL/SQL, whose own semicolons belong to it.
        yield header[1], body[:-2].rstrip() if body.endswith("\n/") else body.removesuffix(";").rstrip()
