"""What tells the databases apart: one frozen value for each, asked for its constants and capabilities.

Nothing else in eventlog compares a database's name. Quoting is SQLAlchemy's, so that reserved words are as up to date
as it is; SQLAlchemy is imported only when something is quoted or connected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from eventlog.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import URL
    from sqlalchemy.engine import Dialect as Compiler
    from sqlalchemy.sql.compiler import IdentifierPreparer


class Dialect(Struct, frozen=True, kw_only=True):
    """One database. `folder` holds its SQL; expressions are SQL text in its own words."""

    name: str
    folder: str
    identifier_bytes: int
    case_sensitive: bool = False
    """Whether undelimited identifiers are (reference 8.2)."""
    embedded: bool = False
    """The database is a file of this machine, which connecting would make."""
    schemas: bool = True
    """Tables stand in schemas; elsewhere the setting `source.schema` names one in associations."""
    transition_tables: bool = False
    """Statement triggers see all rows of their statement."""
    truncate_triggers: bool = False
    instead_of_triggers: bool = False
    qualified_in_triggers: bool = True
    """A trigger's text may name the schema of the tables it writes to."""
    triggers_in_schemas: bool = False
    """A trigger's own name may have a schema; elsewhere it goes with its table."""
    comments_on_triggers: bool = False
    """The marker is a comment beside the trigger; elsewhere it is one in the trigger's text."""
    row_names: tuple[str, str] = ("OLD", "NEW")
    """What a row trigger calls the row before and after."""
    concat: tuple[str, str, str] = ("", " || ", "")
    """What stands before, between and after texts that are joined."""
    script_end: str = ";"
    """Ends a statement in a script, also one that has semicolons inside."""
    partial_indexes: bool = False
    log_has_key: bool = True
    """Whether the log we make has a primary key; without one, uniqueness rests on the identity (measured on PostgreSQL)."""
    transactional_ddl: bool = False
    begin_ddl: str | None = None
    """Opens a transaction where the driver would let DDL run outside of one."""
    now: str
    """The current time as event_time holds it: UTC wherever the database can say it."""
    user: str = "NULL"
    """Who is connected, as perpetrator holds it."""
    backslash: tuple[str, str] = ("'", "\\")
    """How a string that holds a backslash begins, and how the backslash is written in it."""
    plain_types: frozenset[str] | None = None
    """Types whose values differ exactly when their texts do, others being compared as text; None: all of them."""
    unquoted_types: frozenset[str] = frozenset()
    """Types whose text never needs quotes in a table_key."""
    settled_types: frozenset[str] = frozenset()
    """Types whose text does not depend on the session's settings; a trigger on others brings settings of its own."""

    def marked(self, marker: str) -> str:
        """The marker as it stands beside a trigger, or inside one."""
        return self.literal(marker) if self.comments_on_triggers else f"/* {marker} */"

    def quoted(self, name: str) -> str:
        """The identifier as it stands in SQL, in quotes where it needs them."""
        return _preparer(self.name).quote(name)

    def qualified(self, schema: str | None, name: str) -> str:
        """A table's name as it stands in SQL, with its schema if there is one."""
        return f"{self.quoted(schema)}.{self.quoted(name)}" if schema else self.quoted(name)

    def literal(self, text: str) -> str:
        """The text as a SQL string, whatever the session thinks of backslashes."""
        opening, backslash = self.backslash if "\\" in text else ("'", "\\")
        return opening + text.replace("'", "''").replace("\\", backslash) + "'"

    def reported(self, name: str) -> str:
        """The name as the database itself reports it, which is how it stands in a table_key (reference 5.1)."""
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


_EXACT = frozenset({"smallint", "integer", "bigint", "uuid", "date", "timestamp", "boolean"})
"""PostgreSQL's types that have one text for one value, and none of the characters that a table_key quotes."""

SQLITE = Dialect(
    name="sqlite",
    folder="sqlite",
    identifier_bytes=255,
    embedded=True,
    schemas=False,
    instead_of_triggers=True,
    partial_indexes=True,
    transactional_ddl=True,
    qualified_in_triggers=False,
    begin_ddl="BEGIN IMMEDIATE",
    now="strftime('%Y-%m-%d %H:%M:%f', 'now')",
)
POSTGRESQL = Dialect(
    name="postgresql",
    folder="postgresql",
    identifier_bytes=63,
    transition_tables=True,
    truncate_triggers=True,
    comments_on_triggers=True,
    instead_of_triggers=True,
    partial_indexes=True,
    log_has_key=False,
    transactional_ddl=True,
    now="(CURRENT_TIMESTAMP AT TIME ZONE 'UTC')",
    user="SESSION_USER",
    backslash=("E'", r"\\"),
    plain_types=_EXACT | {"bytea", "time"},
    unquoted_types=_EXACT,
    settled_types=_EXACT
    | {"bytea", "time", "text", "varchar", "char", "numeric", "timestamp with time zone", "json", "jsonb"},
)
ORACLE = Dialect(
    name="oracle",
    folder="oracle",
    identifier_bytes=30,
    instead_of_triggers=True,
    triggers_in_schemas=True,
    row_names=(":OLD", ":NEW"),
    script_end="\n/",
    now="CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE)",
    user="SYS_CONTEXT('USERENV', 'SESSION_USER')",
)
MYSQL = Dialect(
    name="mysql",
    folder="mysql",
    identifier_bytes=64,
    schemas=False,
    case_sensitive=True,
    concat=("CONCAT(", ", ", ")"),
    script_end="//",
    now="UTC_TIMESTAMP(6)",
    user="SUBSTRING_INDEX(USER(), '@', 1)",
    backslash=("'", r"\\"),
)
_DIALECTS = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "oracle": ORACLE, "mysql": MYSQL, "mariadb": MYSQL}


def dialect_of(where: str | URL | Engine | Connection) -> Dialect:
    """The dialect of a database by its URL, engine or connection; ConfigError when it is none that eventlog knows."""
    name = where.partition("://")[0] if isinstance(where, str) else _name(where)
    backend = name.partition("+")[0]
    found = _DIALECTS.get(backend)
    if found is None:
        known = ", ".join(sorted(_DIALECTS))
        raise ConfigError(f"eventlog does not know the database {backend!r}; the URL begins with one of {known}.")
    return found


@contextmanager
def ddl_transaction(engine: Engine) -> Iterator[Connection]:
    """A connection whose changes, DDL too, become visible together at the end, as far as the database can do that."""
    begin = dialect_of(engine).begin_ddl
    with engine.begin() as connection:
        if begin and not getattr(connection.connection.driver_connection, "in_transaction", False):
            connection.exec_driver_sql(begin)
        yield connection


def _name(where: Any) -> str:
    named = getattr(where, "dialect", None)
    return str(named.name) if named is not None else str(where.drivername)


@cache
def _compiler(name: str) -> Compiler:
    from sqlalchemy.engine import make_url

    return make_url(f"{name}://").get_dialect()()


@cache
def _preparer(name: str) -> IdentifierPreparer:
    return _compiler(name).identifier_preparer
