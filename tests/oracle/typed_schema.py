"""What Oracle's statements may speak of: our tables, from the DDL that we generate, and its own views and functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

Table = Mapping[str, str]

_KINDS: Final = (
    (r"N?CLOB|BFILE|BLOB|JSON", "lob"),
    (r"LONG", "long"),
    (r"N?VARCHAR2?|N?CHAR|ROWID|UROWID", "text"),
    (r"NUMBER|NUMERIC|DECIMAL|INTEGER|SMALLINT|FLOAT|BINARY_\w+|PLS_INTEGER", "number"),
    (r"DATE|TIMESTAMP", "moment"),
    (r"INTERVAL", "interval"),
    (r"RAW", "raw"),
    (r"BOOLEAN", "boolean"),
    (r"XMLTYPE", "lob"),
)
"""What is told apart: `lob` and `long` are what Oracle neither compares nor sorts nor counts."""

_VIEWS: Final = {
    "ALL_COL_PRIVS": "GRANTOR GRANTEE TABLE_SCHEMA TABLE_NAME COLUMN_NAME PRIVILEGE",
    "ALL_CONSTRAINTS": "OWNER CONSTRAINT_NAME CONSTRAINT_TYPE TABLE_NAME SEARCH_CONDITION:long R_OWNER R_CONSTRAINT_NAME"
    " STATUS DEFERRABLE DEFERRED VALIDATED",
    "ALL_CONS_COLUMNS": "OWNER CONSTRAINT_NAME TABLE_NAME COLUMN_NAME POSITION:number",
    "ALL_DEPENDENCIES": "OWNER NAME TYPE REFERENCED_OWNER REFERENCED_NAME REFERENCED_TYPE",
    "ALL_ERRORS": "OWNER NAME TYPE SEQUENCE:number LINE:number POSITION:number TEXT ATTRIBUTE MESSAGE_NUMBER:number",
    "ALL_INDEXES": "OWNER INDEX_NAME INDEX_TYPE TABLE_OWNER TABLE_NAME UNIQUENESS STATUS",
    "ALL_IND_COLUMNS": "INDEX_OWNER INDEX_NAME TABLE_OWNER TABLE_NAME COLUMN_NAME COLUMN_POSITION:number DESCEND",
    "ALL_OBJECTS": "OWNER OBJECT_NAME SUBOBJECT_NAME OBJECT_ID:number OBJECT_TYPE CREATED:moment LAST_DDL_TIME:moment"
    " TIMESTAMP STATUS",
    "ALL_SEQUENCES": "SEQUENCE_OWNER SEQUENCE_NAME ORDER_FLAG CACHE_SIZE:number LAST_NUMBER:number",
    "ALL_SOURCE": "OWNER NAME TYPE LINE:number TEXT",
    "ALL_TABLES": "OWNER TABLE_NAME TABLESPACE_NAME STATUS NUM_ROWS:number DEPENDENCIES",
    "ALL_TAB_COLUMNS": "OWNER TABLE_NAME COLUMN_NAME DATA_TYPE DATA_LENGTH:number DATA_PRECISION:number DATA_SCALE:number"
    " NULLABLE COLUMN_ID:number DATA_DEFAULT:long CHAR_LENGTH:number COLLATION",
    "ALL_TAB_MODIFICATIONS": "TABLE_OWNER TABLE_NAME PARTITION_NAME SUBPARTITION_NAME INSERTS:number UPDATES:number"
    " DELETES:number TIMESTAMP:moment TRUNCATED",
    "ALL_TAB_PRIVS": "GRANTOR GRANTEE TABLE_SCHEMA TABLE_NAME PRIVILEGE",
    "ALL_TRIGGERS": "OWNER TRIGGER_NAME TRIGGER_TYPE TRIGGERING_EVENT TABLE_OWNER BASE_OBJECT_TYPE TABLE_NAME STATUS"
    " DESCRIPTION TRIGGER_BODY:long",
    "ALL_USERS": "USERNAME USER_ID:number CREATED:moment",
    "DBA_ROLE_PRIVS": "GRANTEE GRANTED_ROLE",
    "DBA_SYS_PRIVS": "GRANTEE PRIVILEGE",
    "DBA_TAB_PRIVS": "GRANTEE OWNER TABLE_NAME GRANTOR PRIVILEGE",
    "DUAL": "DUMMY",
    "NLS_DATABASE_PARAMETERS": "PARAMETER VALUE",
    "PRODUCT_COMPONENT_VERSION": "PRODUCT VERSION STATUS",
    "SESSION_PRIVS": "PRIVILEGE",
}
"""Columns of Oracle's views, as its reference has them; a column is a text unless it says what else."""

_FUNCTIONS: Final = """
CHR number -> text
COUNT any -> number
DBMS_TRANSACTION.LOCAL_TRANSACTION_ID boolean? -> text
INSTR text|lob text number? number? -> number
LENGTH text|lob|number -> number
LOWER text|lob -> same
MAX any -> same
MIN any -> same
MOD number number -> number
NUMTODSINTERVAL number text -> interval
ORA_HASH text|number|moment|raw number? number? -> number
RAWTOHEX raw -> text
REGEXP_LIKE text|lob text text? -> boolean
REGEXP_REPLACE text|lob text text? number? number? text? -> same
REPLACE text|lob text text? -> same
ROUND number number? -> number
ROWIDTOCHAR text -> text
RTRIM text|lob text? -> same
STANDARD_HASH text|number|moment|raw|interval text? -> raw
SUBSTR text|lob number number? -> same
SUBSTRB text number number? -> same
LENGTHB text -> number
SUM number -> number
IS_CLUSTER -> number
SYS_CONTEXT text text -> text
SYS_EXTRACT_UTC moment -> moment
TO_BINARY_DOUBLE text|number -> number
TO_BINARY_FLOAT text|number -> number
HEXTORAW text -> raw
TO_CHAR number|moment|interval|text|lob text? text? -> text
TO_CLOB text|lob -> lob
TO_DATE text text text? -> moment
TO_NUMBER text text? text? -> number
TO_TIMESTAMP text text text? -> moment
UPDATING text? -> boolean
UPPER text|lob -> same
UTL_ENCODE.BASE64_ENCODE raw -> raw
UTL_RAW.CAST_TO_RAW text -> raw
UTL_RAW.CAST_TO_VARCHAR2 raw -> text
XMLSERIALIZE lob -> lob
"""
"""Name, arguments and result; `same` is the kind of the first argument. An argument with ? may be left out."""


class Function:
    """What a function takes and gives."""

    def __init__(self, line: str) -> None:
        self.name, _, rest = line.partition(" ")
        taken, _, self.gives = f" {rest}".rpartition(" -> ")
        self.takes = [frozenset(one.rstrip("?").split("|")) for one in taken.split()]
        self.needed = sum(not one.endswith("?") for one in taken.split())


FUNCTIONS: Final = {function.name: function for function in map(Function, _FUNCTIONS.strip().splitlines())}
PSEUDO: Final = {
    "ROWNUM": "number",
    "ORA_ROWSCN": "number",
    "LEVEL": "number",
    "ROWID": "text",
    "USER": "text",
    "SYSDATE": "moment",
    "SYSTIMESTAMP": "moment",
    "CURRENT_TIMESTAMP": "moment",
    "SQLCODE": "number",
}
"""What looks like a column and is none."""


def kind_of(sql_type: str) -> str:
    """Say which of the kinds a column's type is of; types that somebody made are texts to us."""
    upper = sql_type.upper().strip()
    if upper.startswith("INTERVAL"):
        return "interval"
    for pattern, kind in _KINDS:
        if re.match(rf"(?:{pattern})\b", upper):
            return kind
    return "any"


def catalog() -> dict[str, Table]:
    """Oracle's own views."""
    return {
        name: {column: kind or "text" for column, _, kind in (one.partition(":") for one in columns.split())}
        for name, columns in _VIEWS.items()
    }


_table = re.compile(r'CREATE TABLE (?:(?:"[^"]+"|\w+)\.)?("[^"]+"|\w+) \(\n(.*?)^\)', re.DOTALL | re.MULTILINE)
_line = re.compile(r'^ +("[^"]+"|\w+) ([A-Z]\w+(?: RAW)?)', re.MULTILINE)


def tables_made(statements: Iterable[str]) -> dict[str, Table]:
    """Find the tables that statements of DDL make, with their columns' kinds."""
    found: dict[str, Table] = {}
    for made in filter(None, map(_table.match, statements)):
        lines = [line for line in _line.findall(made[2]) if line[0] not in ("PRIMARY", "CONSTRAINT")]
        found[plain(made[1])] = {plain(name): kind_of(written) for name, written in lines}
    return found


def plain(name: str) -> str:
    """Write a name as Oracle keeps it: in capitals unless it is quoted."""
    return name.strip('"') if name.startswith('"') else name.upper()
