"""Oracle: its constants and capabilities, its keys and its types."""

from __future__ import annotations

from typing import Final

from eventlog.databases.oracle.keys import JsonTableLookup
from eventlog.databases.oracle.types import TYPES
from eventlog.sql.ddl import Ddl
from eventlog.sql.dialect import DDL_LOCK_SECONDS, Dialect
from eventlog.sql.driver import DatabaseDriver
from eventlog.sql.error_codes import NAME_IS_TAKEN, ErrorCodes

ADVICE: Final[dict[int | str, str]] = {
    18: "The server has no session left: raise SESSIONS, or end some. It continues when one is free.",
    20: "The server has no process left: raise PROCESSES, or end some sessions. It continues when one is free.",
    257: "The archive log destination is full: a DBA backs up and deletes archive logs. It continues when there is space.",
    2391: "This user has as many sessions as SESSIONS_PER_USER of its profile allows: raise it, or end some.",
    4031: "The shared pool is full: a DBA enlarges SHARED_POOL_SIZE or flushes it. It is tried again.",
    8103: "A table was truncated, moved or dropped while it was read. It is tried again with the table as it is now.",
    12516: "The listener knows no free process: raise PROCESSES, or end some sessions. It continues when one is free.",
    12520: "The listener knows no free process: raise PROCESSES, or end some sessions. It continues when one is free.",
    16000: "The database is open for reading only, as a standby is. It continues when it is the primary again.",
    30036: "The undo tablespace is full: enlarge it, or wait for long transactions to end. It is tried again.",
}
"""What passes when somebody does something, with what that is; `Similar to ORA-12516` is how the
driver names an error of a listener.
"""

LASTING_ADVICE: Final[dict[int | str, str]] = {
    4081: NAME_IS_TAKEN,
    43853: "The log's values are SecureFiles, which need a tablespace with automatic segment space management (ASSM):"
    " name one with --tablespace, or make one with SEGMENT SPACE MANAGEMENT AUTO.",
}
"""What passes only when somebody asks for something else."""

PASSING: Final[frozenset[int | str]] = frozenset(
    {51, 54, 60, 1536, 1555, 1562, 1628, 1652, 1653, 1654, 1688, 1691, 4021, 4068, 8177, 30006, "DPY-4024"}
)
"""Busy, deadlocked, no room, a snapshot too old or in conflict, a library in use: oracledb
has them as lasting.
"""

ORACLE = Dialect(
    name="oracle",
    room=__package__ or "",
    lookup=JsonTableLookup(),
    types=TYPES,
    # As before 12.2, whatever the server can do: names must not depend on it.
    identifier_bytes=30,
    type_texts={
        **dict.fromkeys(("interval year to month", "interval day to second"), "text_of_other"),
        **dict.fromkeys(("rowid", "urowid"), "text_of_other"),
    },
    key_texts=dict.fromkeys(("char", "nchar"), "text_of_char"),
    upper_case=True,
    plain_types=frozenset(
        ["number", "float", "binary_float", "binary_double", "raw", "date"]
        + ["timestamp", "timestamp with time zone", "timestamp with local time zone"]
        + ["interval year to month", "interval day to second"]
    ),
    unquoted_types=frozenset({"int", "date", "timestamp"}),
    reserved=frozenset(
        ["BEGIN", "CASE", "CLUSTERS", "COLAUTH", "COLUMNS", "CRASH", "CURSOR", "DECLARE", "END"]
        + ["EXCEPTION", "FETCH", "FUNCTION", "GOTO", "IF", "INDEXES", "OVERLAPS", "PROCEDURE", "SQL"]
        + ["SUBTYPE", "TABAUTH", "TYPE", "VIEWS", "WHEN"]
    ),
    now="CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE)",
    later="({now} + NUMTODSINTERVAL({seconds}, 'SECOND'))",
    user="SYS_CONTEXT('USERENV', 'SESSION_USER')",
    context="SUBSTR(SYS_CONTEXT('USERENV', 'CLIENT_IDENTIFIER') || CASE WHEN SYS_CONTEXT('USERENV', 'CLIENT_IDENTIFIER')"
    " IS NOT NULL AND SYS_CONTEXT('USERENV', 'MODULE') IS NOT NULL THEN ' / ' END || SYS_CONTEXT('USERENV', 'MODULE'), 1, 400)",
    transaction_guess="a row's transaction is the number of its commit,"
    " or that of its block unless the log has ROWDEPENDENCIES",
    driver=DatabaseDriver(
        jdbc_addresses=(
            (r"jdbc:oracle:thin:@(?://)?([^/?]+)/([^?]+)", r"oracle+oracledb://\1/?service_name=\2"),
            (r"jdbc:oracle:thin:@([^/:?]+:\d+):([^?]+)", r"oracle+oracledb://\1/\2"),
        ),
        module="oracledb",
        extra="oracle",
        lob_parameters=True,
        limits_calls=True,
        names_sessions=True,
    ),
    ddl=Ddl(
        names_storage=True,
        triggers_in_schemas=True,
        procedural_triggers=True,
        # LONG never; of LOBs a trigger may not read the new value.
        unseen_types=frozenset(
            ["clob", "nclob", "blob", "bfile", "long", "long raw", "xmltype", "json", "sdo_geometry"]
        ),
        # The Base64 of a longer one, with its line ends, has more than PL/SQL's 32,767 bytes.
        unseen_lengths={"raw": 23_800},
        next_number="{sequence}.NEXTVAL",
        # PL/SQL takes 32,767 bytes in one piece.
        trigger_bytes=32_760,
        long_text="TO_CLOB({text})",
        # SQL*Plus cuts lines behind 2,499 characters.
        line_characters=2499,
        row_names=(":OLD", ":NEW"),
        # An index holds no row of NULLs alone, so this one holds the rows that wait.
        waiting_number="CASE WHEN {status} = 'N' THEN {record_id} END",
        script_commit="COMMIT\n\n/\n",
        script_head="WHENEVER SQLERROR EXIT FAILURE ROLLBACK\nSET DEFINE OFF\nSET SQLBLANKLINES ON\n\n"
        f"ALTER SESSION SET DDL_LOCK_TIMEOUT = {DDL_LOCK_SECONDS}\n/\n\n",
        ddl_limits=(
            "ALTER SESSION SET DDL_LOCK_TIMEOUT = {seconds}",
            "ALTER SESSION SET DDL_LOCK_TIMEOUT = 0",
        ),
        script_end="\n/",
    ),
    errors=ErrorCodes(
        # Reading waits for no lock, but for DDL that is under way and for transactions in doubt.
        lock_codes=frozenset({54, 1591, 4021}),
        deadlock_codes=frozenset({60}),
        timeout_codes=frozenset({1013, "DPY-4024"}),
        # A datafile that is away, damaged blocks, an index that is unusable or lacks rows.
        damage_codes=frozenset([376, 1502, 1578, 8102, 26040]),
        passing_codes=PASSING | ADVICE.keys(),
        advice=ADVICE | LASTING_ADVICE,
        code_in_words=r"Similar to ORA-(\d+)",
        # Too large for its column, no number, no date, out of range.
        value_codes=frozenset(
            [1400, 1426, 1438, 1461, 1465, 1722, 1830, 1840, 1841, 1843, 1847, 1858, 1861, 2290, 12899]
        ),
        # Two for rights: on the object, and on what is done.
        denied_codes=frozenset({1031, 41900}),
    ),
)
