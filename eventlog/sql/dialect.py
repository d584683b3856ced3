"""What tells the databases apart: one frozen value for each, asked for its constants and capabilities.

Nothing else in eventlog compares a database's name. Quoting is SQLAlchemy's, so that reserved words are as up to date
as it is; SQLAlchemy is imported only when something is quoted or connected.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from eventlog.errors import ConfigError
from eventlog.sqltypes import bare_type

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
    oldest_server: tuple[int, ...] = ()
    """The oldest version that the tests run on; empty where only one was tried."""
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
    procedural_triggers: bool = False
    """One trigger stands for all events and is replaced in place; its conditions hold no queries, so those are asked
    before; and it must not look at a table that the same statement changes."""
    unseen_types: frozenset[str] = frozenset()
    """Types of columns whose values a trigger cannot read; they are read back."""
    type_texts: Mapping[str, str] = {}
    """Types whose text is written by a fragment of their own."""
    lob_parameters: bool = False
    """A text longer than the longest string must be bound as a LOB."""
    reserved: frozenset[str] = frozenset()
    """Words that need quotes in the language of triggers, besides those of SQL."""
    next_number: str | None = None
    """The next number of a sequence, where a log may have one instead of numbering its rows itself."""
    trigger_bytes: int | None = None
    """How long a trigger's text may be."""
    upper_case: bool = False
    """Names that nobody quotes are upper-case."""
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
    comments_survive: bool = True
    """A comment in a trigger's text stays there, whatever client made it; elsewhere the marker is a statement."""
    script_commit: str = ""
    """Ends a script whose last statements are not on disk yet."""
    script_start: str = ""
    """Begins a script, where the database's shell must be told how its statements end."""
    checks_identity: bool = True
    """A CHECK may speak of a column that numbers itself."""
    passing_errors: frozenset[int] = frozenset()
    """Numbers of the errors that waiting may cure, where the driver's classes do not tell them from the others."""
    now: str
    """The current time as event_time holds it: UTC wherever the database can say it."""
    user: str = "NULL"
    """Who is connected, as perpetrator holds it."""
    backslash: tuple[str, str] | None = ("'", "\\")
    """How a string that holds a backslash begins, and how the backslash is written in it; None: the session decides."""
    plain_types: frozenset[str] | None = None
    """Types whose values differ exactly when their texts do, others being compared as text; None: all of them."""
    unquoted_types: frozenset[str] = frozenset()
    """Types whose text never needs quotes in a table_key."""
    settled_types: frozenset[str] = frozenset()
    """Types whose text does not depend on the session's settings; a trigger on others brings settings of its own."""

    def marked(self, marker: str) -> str:
        """The marker as it stands beside a trigger, or inside one."""
        if self.comments_on_triggers:
            return self.literal(marker)
        return f"/* {marker} */" if self.comments_survive else f"DO 'eventlog {b64encode(marker.encode()).decode()}';"

    def quoted(self, name: str) -> str:
        """The identifier as it stands in SQL, in quotes where it needs them."""
        if name.upper() in self.reserved:
            return f'"{name.upper() if name.islower() else name}"'
        return _preparer(self.name).quote(self.normalised(name) if name.isupper() else name)

    def beside(self, name: str, neighbour: str) -> str:
        """A name of ours in the case of the name that it stands beside."""
        return name.upper() if self.upper_case and neighbour.isupper() else name

    def unseen(self, sql_type: str) -> bool:
        """Whether a trigger cannot read values of this type."""
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

_ORACLE_EXACT = frozenset({"number", "float", "date", "timestamp"})
"""Oracle's types whose values are equal when their texts are."""

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
    oldest_server=(13,),
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
    procedural_triggers=True,
    # LONG never; of LOBs a trigger may not read the new value. A RAW that is longer than SQL's has no Base64 in one piece.
    unseen_types=frozenset({"clob", "nclob", "blob", "bfile", "long", "long raw", "xmltype", "json", "sdo_geometry"}),
    type_texts={
        **dict.fromkeys(("char", "nchar"), "text_of_char"),
        **dict.fromkeys(("interval year to month", "interval day to second", "rowid", "urowid"), "text_of_other"),
    },
    lob_parameters=True,
    upper_case=True,
    plain_types=_ORACLE_EXACT | {"raw", "binary_float", "binary_double"},
    unquoted_types=frozenset({"int", "date", "timestamp"}),
    reserved=frozenset(
        ["BEGIN", "CASE", "CLUSTERS", "COLAUTH", "COLUMNS", "CRASH", "CURSOR", "DECLARE", "END", "EXCEPTION", "FETCH"]
        + ["FUNCTION", "GOTO", "IF", "INDEXES", "OVERLAPS", "PROCEDURE", "SQL", "SUBTYPE", "TABAUTH", "TYPE", "VIEWS"]
        + ["WHEN"]
    ),
    next_number="{sequence}.NEXTVAL",
    trigger_bytes=32_760,
    row_names=(":OLD", ":NEW"),
    script_commit="COMMIT\n\n/\n",
    script_start="SET DEFINE OFF\nSET SQLBLANKLINES ON\n\n",
    script_end="\n/",
    now="CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE)",
    user="SYS_CONTEXT('USERENV', 'SESSION_USER')",
)
_MYSQL_EXACT = frozenset(
    {
        f"{name}{sign}"
        for name in ("tinyint", "smallint", "mediumint", "integer", "bigint")
        for sign in ("", " unsigned")
    }
    | {"decimal", "decimal unsigned", "numeric", "year", "bit", "bool", "boolean"}
    | {"date", "time", "datetime", "timestamp", "uuid"}
)
"""Types of MariaDB and MySQL that have one text for one value, and none of the characters that a table_key quotes."""
_MYSQL_PLAIN = _MYSQL_EXACT | {"float", "double", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_MYSQL_SHAPES = (
    *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
    *("geometrycollection", "geomcollection"),
)
MYSQL = Dialect(
    name="mysql",
    folder="mysql",
    identifier_bytes=64,
    schemas=False,
    case_sensitive=True,
    checks_identity=False,
    # Locks, full disks and tables, connections that are refused, lost, killed or timed out, servers that go down or only read.
    passing_errors=frozenset(
        [
            1021,
            1040,
            1041,
            1053,
            1114,
            1129,
            1152,
            1158,
            1159,
            1160,
            1161,
            1203,
            1205,
            1206,
            1213,
            1226,
            1290,
            1317,
            1836,
        ]
        + [1927, 1969, 2002, 2003, 2005, 2006, 2013, 2055, 3024, 3168, 4031]
    ),
    concat=("CONCAT(", ", ", ")"),
    comments_survive=False,  # its shell takes them out
    script_start="DELIMITER //\n\n",
    script_end="//",
    triggers_in_schemas=True,
    now="UTC_TIMESTAMP(6)",
    # Without the host, which comes after the last @; the name may have some as well.
    user="LEFT(USER(), CHAR_LENGTH(USER()) - CHAR_LENGTH(SUBSTRING_INDEX(USER(), '@', -1)) - 1)",
    backslash=None,
    plain_types=_MYSQL_PLAIN,
    unquoted_types=_MYSQL_EXACT,
    type_texts={"bit": "text_of_int", "timestamp": "text_of_zoned"} | dict.fromkeys(_MYSQL_SHAPES, "text_of_shape"),
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
