"""MariaDB and MySQL: their constants and capabilities, their keys and their types."""

from __future__ import annotations

from eventlog.databases.mysql.keys import MysqlLookup
from eventlog.databases.mysql.types import SHAPES, TYPES
from eventlog.sql.ddl import Ddl
from eventlog.sql.dialect import Dialect
from eventlog.sql.driver import DatabaseDriver
from eventlog.sql.error_codes import NAME_IS_TAKEN, ErrorCodes

_EXACT = frozenset(
    {
        f"{name}{sign}"
        for name in ("tinyint", "smallint", "mediumint", "integer", "bigint")
        for sign in ("", " unsigned")
    }
    | {"decimal", "decimal unsigned", "numeric", "year", "bit", "bool", "boolean"}
    | {"date", "time", "datetime", "timestamp", "uuid"}
)
"""Types that have one text for one value, and none of the characters that a table_key quotes."""
_PLAIN = _EXACT | {"float", "double", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
MYSQL = Dialect(
    name="mysql",
    room=__package__ or "",
    constant_ranges=True,
    lookup=MysqlLookup(),
    types=TYPES,
    identifier_bytes=64,
    schemas=False,
    case_sensitive=True,
    concat=("CONCAT(", ", ", ")"),
    now="UTC_TIMESTAMP(6)",
    later="({now} + INTERVAL {seconds} SECOND)",
    # Without the host, which comes after the last @; the name may have some as well.
    user="LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))",
    # What is binary may be no text, which would fail the writer.
    context="LEFT(@eventlog_context, 400)",
    # NO_BACKSLASH_ESCAPES of the session decides what a backslash is, so literals avoid it.
    backslash=None,
    plain_types=_PLAIN,
    unquoted_types=_EXACT,
    type_texts={"bit": "text_of_int", "timestamp": "text_of_zoned", "vector": "text_of_octet"}
    | {"longtext": "text_of_long"}
    | dict.fromkeys(SHAPES, "text_of_shape")
    | dict.fromkeys(("float", "float unsigned"), "text_of_single")
    | dict.fromkeys(("double", "double unsigned", "real", "double precision"), "text_of_double")
    | {f"{name} unsigned zerofill": "text_of_padded" for name in ("decimal", "numeric", "float", "double")},
    driver=DatabaseDriver(
        jdbc_addresses=((r"jdbc:(mysql|mariadb)://([^?]+)", r"\1+pymysql://\2"),),
        module="pymysql",
        extra="mysql",
        answer_argument="read_timeout",
        doubled_sign="`",
        untaught_types=frozenset({"vector"}),
        latin_driver="+pymysql",
        program_argument="program_name",
        login_package="cryptography",
        untaught_words=frozenset({"external", "library", "tablesample"}),  # of MySQL 9
    ),
    ddl=Ddl(
        cascades_fire_triggers=False,
        checks_identity=False,
        ddl_limits=(
            "SET SESSION lock_wait_timeout = {seconds}, innodb_lock_wait_timeout = {seconds}",
            "SET SESSION lock_wait_timeout = DEFAULT, innodb_lock_wait_timeout = DEFAULT",
        ),
        # The bodies of triggers hold semicolons, at which its shell would end the statement.
        script_start="DELIMITER //\n\n",
        script_end="//",
        bare_beside_triggers=True,
        triggers_in_schemas=True,
    ),
    errors=ErrorCodes(
        lock_codes=frozenset({1205}),  # ER_LOCK_WAIT_TIMEOUT
        deadlock_codes=frozenset({1213}),  # ER_LOCK_DEADLOCK
        timeout_codes=frozenset({1317, 1969, 3024}),
        # A file that cannot be opened, is gone, is none of the server's, or is damaged: a table's, an
        # index's, a tablespace's.
        damage_codes=frozenset(
            [1016, 1017, 1030, 1033, 1034, 1035, 1194, 1195, 1296, 1712, 1812, 1814, 1815, 1877, 1932]
        ),
        # Locks, full disks and tables, connections that are refused, lost, killed or timed out, servers
        # that go down or only read.
        passing_errors=frozenset(
            [1021, 1040, 1041, 1053, 1114, 1129, 1152, 1158, 1159, 1160, 1161, 1203, 1205, 1206, 1213]
            + [1226, 1290, 1317, 1836, 1927, 1969, 2002, 2003, 2005, 2006, 2013, 2055, 3024, 3032, 3101]
            + [3168, 4031]
        ),
        # On a table, a column or a routine.
        denied_codes=frozenset({1142, 1143, 1370}),
        advice={1359: NAME_IS_TAKEN},
    ),
)
