"""What tells the databases apart: one frozen value for each, asked for its constants and capabilities.

Nothing else in eventlog compares a database's name. What there is to ask stands in `traits`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from eventlog.core.errors import ConfigError, SourceError
from eventlog.sql.traits import Dialect

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import URL
    from sqlalchemy.exc import DBAPIError

__all__ = ["MYSQL", "ORACLE", "POSTGRESQL", "SQLITE", "Dialect", "ddl_transaction", "dialect_of"]

DDL_LOCK_SECONDS = 10
"""How long the making of tables and triggers waits for a lock: everybody who comes after it waits as well."""

_EXACT = frozenset({"smallint", "integer", "bigint", "uuid", "date", "timestamp", "boolean"})
"""PostgreSQL's types that have one text for one value, and none of the characters that a table_key quotes."""

SQLITE = Dialect(
    name="sqlite",
    identifier_bytes=255,
    embedded=True,
    lone_writer=True,
    schemas=False,
    instead_of_triggers=True,
    partial_indexes=True,
    transactional_ddl=True,
    qualified_in_triggers=False,
    begin_ddl="BEGIN IMMEDIATE",
    passing_errors=frozenset([5, 6, 7, 9, 10, 13, 14, 15]),  # busy, locked, interrupted; no memory, disk, space or file
    locked_errors=frozenset([5, 6]),
    now="strftime('%Y-%m-%d %H:%M:%f', 'now')",
)
POSTGRESQL = Dialect(
    name="postgresql",
    oldest_server=(13,),
    domains=True,
    identifier_bytes=63,
    transition_tables=True,
    truncate_triggers=True,
    hides_virtual_columns=True,
    ddl_limits=("SET LOCAL lock_timeout = '{seconds}s'", ""),
    declared_constants=True,
    comments_on_triggers=True,
    instead_of_triggers=True,
    partial_indexes=True,
    log_has_key=False,
    transactional_ddl=True,
    lone_statements=True,
    denied_codes=frozenset({"42501"}),
    now="(CURRENT_TIMESTAMP AT TIME ZONE 'UTC')",
    user="SESSION_USER",
    backslash=("E'", r"\\"),
    plain_types=_EXACT | {"bytea", "time"},
    unquoted_types=_EXACT,
    settled_types=_EXACT
    | {"bytea", "time", "text", "varchar", "char", "numeric", "timestamp with time zone", "json", "jsonb"},
    # libpq tells no SQLSTATE of a connection that failed; a server that speaks another language is tried again.
    refusals=(
        *("authentication failed for user", "no password supplied", "no pg_hba.conf entry", "pg_hba.conf rejects"),
        *("does not exist", "is not permitted to log in", "permission denied for database"),
    ),
    connect_arguments={
        "connect_timeout": 10,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
    },
    lease_arguments={"keepalives_idle": 1, "keepalives_interval": 1 / 3, "tcp_user_timeout": 2_000},
    passing_codes=frozenset({"25P03", "25P04"}),  # the server ended a transaction that was idle, or took too long
)
ORACLE = Dialect(
    name="oracle",
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
    plain_types=frozenset(
        ["number", "float", "binary_float", "binary_double", "raw", "date", "timestamp", "timestamp with time zone"]
        + ["timestamp with local time zone", "interval year to month", "interval day to second"]
    ),
    unquoted_types=frozenset({"int", "date", "timestamp"}),
    reserved=frozenset(
        ["BEGIN", "CASE", "CLUSTERS", "COLAUTH", "COLUMNS", "CRASH", "CURSOR", "DECLARE", "END", "EXCEPTION", "FETCH"]
        + ["FUNCTION", "GOTO", "IF", "INDEXES", "OVERLAPS", "PROCEDURE", "SQL", "SUBTYPE", "TABAUTH", "TYPE", "VIEWS"]
        + ["WHEN"]
    ),
    next_number="{sequence}.NEXTVAL",
    trigger_bytes=32_760,
    row_names=(":OLD", ":NEW"),
    # Busy, deadlocked, no room, a snapshot too old or in conflict, a library in use: oracledb tells them as lasting.
    passing_codes=frozenset(
        {51, 54, 60, 1536, 1555, 1562, 1628, 1652, 1653, 1654, 1688, 1691, 4021, 4068, 8177, 30006, "DPY-4024"}
    ),
    denied_codes=frozenset({1031, 41900}),
    limits_calls=True,
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
        + [1927, 1969, 2002, 2003, 2005, 2006, 2013, 2055, 3024, 3032, 3101, 3168, 4031]
    ),
    denied_codes=frozenset({1142, 1143, 1370}),
    concat=("CONCAT(", ", ", ")"),
    answer_argument="read_timeout",
    ddl_limits=(
        "SET SESSION lock_wait_timeout = {seconds}, innodb_lock_wait_timeout = {seconds}",
        "SET SESSION lock_wait_timeout = DEFAULT, innodb_lock_wait_timeout = DEFAULT",
    ),
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
    untaught_types=frozenset({"vector"}),
    tells_roughly=True,
    latin_driver="+pymysql",
    login_package="cryptography",
    untaught_words=frozenset({"external", "library", "tablesample"}),  # of MySQL 9
    type_texts={"bit": "text_of_int", "timestamp": "text_of_zoned", "vector": "text_of_octet"}
    | dict.fromkeys(_MYSQL_SHAPES, "text_of_shape")
    | {f"{name} unsigned zerofill": "text_of_padded" for name in ("decimal", "numeric", "float", "double")},
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


def is_lasting(error: BaseException | None) -> bool:
    """Whether a driver's error has a number that waiting does not cure; PyMySQL has one class for deadlocks and typing errors.

    So has sqlite3, which tells the number apart from the text, with details in its higher bits. Who was turned away at
    the door will be turned away again: to try the same password for ever only locks the account.
    """
    if _is_refusal(error):
        return True
    number = _number_of(error)
    passing = frozenset[int]().union(*(dialect.passing_errors for dialect in _DIALECTS.values()))
    return isinstance(number, int) and number > 0 and number not in passing


def is_locked(dialect: Dialect, error: BaseException | None) -> bool:
    """Whether a driver's error says that another process has locked the whole database."""
    return _number_of(error) in dialect.locked_errors


def _number_of(error: BaseException | None) -> object:
    told = getattr(error, "sqlite_errorcode", None)
    if isinstance(told, int):
        return told & 0xFF
    return error.args[0] if error is not None and error.args else None


def _is_refusal(error: BaseException | None) -> bool:
    """Whether a server has refused a connection for good, as far as only its words say so."""
    said = str(error)
    if "FATAL" not in said and "no password supplied" not in said:
        return False
    return any(words in said for dialect in _DIALECTS.values() for words in dialect.refusals)


def is_passing(dialect: Dialect, error: BaseException | None) -> bool:
    """Whether a driver's error has a code that waiting may cure, where the driver's class does not say so."""
    told = error.args[0] if error is not None and error.args else None
    codes = {getattr(told, name, None) for name in ("code", "full_code")} | {getattr(error, "sqlstate", None)}
    return not codes.isdisjoint(dialect.passing_codes) or bool(getattr(told, "isrecoverable", False))


def is_denied(dialect: Dialect, error: BaseException | None) -> bool:
    """Whether a driver's error says that a right is missing."""
    told = error.args[0] if error is not None and error.args else None
    codes = {getattr(error, "sqlstate", None), getattr(told, "code", None)} | (
        {told} if isinstance(told, int) else set()
    )
    return not codes.isdisjoint(dialect.denied_codes)


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
            raise _in_use(error) or error from error
        finally:
            if unlimit:
                connection.exec_driver_sql(unlimit)


def _in_use(error: DBAPIError) -> SourceError | None:
    """What is said when a lock did not come in time."""
    told = error.orig
    number = told.args[0] if told is not None and told.args else None
    if getattr(told, "sqlstate", None) != "55P03" and number != 1205:
        return None
    message = f"Somebody works with the table, and the lock on it did not come within {DDL_LOCK_SECONDS} s."
    return SourceError(message, hint="Try again when long transactions have ended: nothing was changed.")


def _name(where: Any) -> str:
    named = getattr(where, "dialect", None)
    return str(named.name) if named is not None else str(where.drivername)
