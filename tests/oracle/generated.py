"""Every statement that eventlog generates for Oracle, by name, from tables that are awkward on purpose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from eventlog.capture.install import install_sql, uninstall_sql
from eventlog.capture.log_tables import Storage
from eventlog.capture.plan import plan
from eventlog.capture.render import render
from eventlog.capture.track import script
from eventlog.core.schema import Child, Column, Table
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.refresh.loads import Load, Statements
from eventlog.sql.dialect import texts
from eventlog.sql.names import NEW_ORDER, OLD_ORDER, LogNames
from eventlog.tracked.options import Style, TriggerOptions

Named = tuple[str, str]

TYPES = [
    "VARCHAR2(64)",
    "CHAR(5)",
    "NVARCHAR2(10)",
    "NCHAR(3)",
    "CLOB",
    "NCLOB",
    "LONG",
    "NUMBER",
    "NUMBER(10,0)",
    "NUMBER(12,3)",
    "FLOAT(126)",
    "BINARY_FLOAT",
    "BINARY_DOUBLE",
    "DATE",
    "TIMESTAMP(6)",
    "TIMESTAMP(9) WITH TIME ZONE",
    "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "INTERVAL DAY(2) TO SECOND(6)",
    "INTERVAL YEAR(2) TO MONTH",
    "RAW(16)",
    "LONG RAW",
    "BLOB",
    "BFILE",
    "ROWID",
    "XMLTYPE",
    "BOOLEAN",
    "SOMETHING.OF_THEIRS",
]


def columns(*described: str, keys: int = 0) -> tuple[Column, ...]:
    """Columns, each written as its name and its type with a colon between; the first ones are the key."""
    parted = [one.rpartition(":") for one in described]
    return tuple(
        Column(name=name, type=type_, key=place if place <= keys else None)
        for place, (name, _, type_) in enumerate(parted, 1)
    )


PLAIN = Table(
    name="USR",
    schema="INDIRECT",
    columns=columns("IDU:NUMBER(10,0)", "FNAME:VARCHAR2(64)", "LNAME:VARCHAR2(64)", keys=1),
    children=(
        Child(name="USR_PHONE", parent_key=("IDU",), columns=columns("IDU:NUMBER(10,0)", "PHONENO:VARCHAR2(32)")),
    ),
)
EVERY_TYPE = Table(
    name="EVERY_TYPE",
    schema="INDIRECT",
    columns=columns("K:VARCHAR2(64)", *[f"C{place}:{type_}" for place, type_ in enumerate(TYPES)], keys=1),
)
AWKWARD = Table(
    name="Order",
    schema="It's mine",
    columns=columns(
        *("SELECT:VARCHAR2(9)", "when:RAW(16)", "Mixed Name:BINARY_DOUBLE", "A:B:TIMESTAMP(6)"),
        *("DECLARE:BLOB", "a''b:LONG RAW"),
        keys=4,
    ),
    children=(
        Child(
            name="A_TABLE_WITH_A_NAME_OF_THIRTY_",
            parent_key=("A", "B", "C", "D"),
            columns=columns(
                *("A:VARCHAR2(9)", "B:RAW(16)", "C:BINARY_DOUBLE", "D:TIMESTAMP(6)"),
                "LONGER_NAMES_THAN_THAT_GO_NOT:CLOB",
            ),
        ),
    ),
)
VIEW = Table(
    name="VIEW_USR",
    schema="DIRECT",
    view=True,
    columns=columns("PK_EMPNO:NUMBER(4,0)", "MV_PHONENO:VARCHAR2(32)"),
)
ALL_KEY = Table(name="ALL_KEY", columns=(Column(name="A", type="NUMBER", key=2), Column(name="B", type="DATE", key=1)))
TABLES = (PLAIN, EVERY_TYPE, AWKWARD, VIEW, ALL_KEY)
CONDITIONS = (None, "1 = 1 OR 'it''s /* not */ a comment' IS NULL")
THEIRS = LogNames(
    table="INDIRECT_PROCESS",
    schema="INDIRECT",
    columns=("ID", "STATUS", "TYPE", "WHEN", "BY", "TABLE", "KEY", "Column", "OLD", "NEW"),
    sequence="SEQ_LOG",
)
LOGS = (LogNames(), LogNames(schema="INDIRECT"), THEIRS)


def statements(text: str) -> list[str]:
    """A script's statements as SQL*Plus parts them: at slashes on lines of their own; without its own commands."""
    parts = re.split(r"^/[ \t]*$", text, flags=re.MULTILINE)
    # The grammar knows no session parameter that is a number.
    own = (
        r"^(?:--.*|SET [A-Z]+ (?:ON|OFF)|WHENEVER SQLERROR EXIT FAILURE ROLLBACK"
        r"|ALTER SESSION SET DDL_LOCK_TIMEOUT = [0-9]+)$"
    )
    bare = (re.sub(own, "", part, flags=re.MULTILINE).strip() for part in parts)
    return [one for part in bare if part for one in (part, *_inside(part))]


def _inside(block: str) -> list[str]:
    """What a block runs as a text, which the grammar would not look into."""
    found = re.findall(r"EXECUTE IMMEDIATE '((?:[^']|'')*)'", block)
    return [text.replace("''", "'") for text in found]


def installation() -> Iterator[Named]:
    """What `install --sql` prints, in both orders and with any names, and what `uninstall --sql` does."""
    for order, names in product((NEW_ORDER, OLD_ORDER), LOGS):
        for place, text in enumerate(statements(install_sql("oracle://", names, order))):
            yield f"install {names.table} {order[1]} {place}", text
    storages = (
        Storage(tablespace="log_data"),
        Storage(partition_rows=10**6),
        Storage(tablespace="D", partition_rows=10**6),
    )
    for storage, names in zip(storages, LOGS, strict=True):
        for place, text in enumerate(statements(install_sql("oracle://", names, storage=storage))):
            yield f"install stored {names.table} {place}", text
    for names in LOGS:
        for place, text in enumerate(statements(uninstall_sql("oracle://", names))):
            yield f"uninstall {names.table} {place}", text


def triggers() -> Iterator[Named]:
    """What `track --sql` prints for every style, with and without a condition, late keys, and what takes triggers off."""
    cases = [
        *product(TABLES, Style, CONDITIONS, LOGS[1:2], (False,)),
        *product(TABLES[:1], Style, CONDITIONS[:1], LOGS, (False,)),
        *product(TABLES[:1], Style, (None,), LOGS[1:2], (True,)),
    ]
    for table, style, when, names, late in cases:
        if style == Style.IMAGE and (table.view or late):
            continue  # refused
        found = render(plan(table, TriggerOptions(style=style, when=when, deferred=late)), ORACLE, names)
        made = [text for trigger in found for text in (*trigger.create, *trigger.drop)]
        for place, text in enumerate(statements(script(made, ORACLE))):
            yield f"{table.name} {style} {'when ' if when else ''}{'late ' if late else ''}{names.table} {place}", text


def loads() -> Iterator[Named]:
    """What a full load asks of each table, and the rows that it writes."""
    for table, when, names in product(TABLES, CONDITIONS, LOGS):
        made = Statements(ORACLE, names, Load(table=table, called=table.name, when=when, where="1 < 2"))
        asked = {"count": made.count, "row": made.row, "waiting": made.waiting}
        for bounded in made.keys:
            asked |= {f"keys {bounded}": made.keys[bounded], f"bound {bounded}": made.bound[bounded]}
        for query, sql in asked.items():
            yield f"{query} {table.name} {'when ' if when else ''}{names.table}", sql.text.replace("\\:", ":")


def queries() -> Iterator[Named]:
    """Every query of the folder with its holes filled with what stands in the file, and fragments in a statement."""
    for name, text in texts(ORACLE).items():
        bare = re.sub(r"/\*\s*[a-z][a-z0-9_]*\s*\*/", "", text)
        if bare.strip():
            yield name, whole(name, bare)


_STATEMENT = re.compile(
    r"(?:SELECT|WITH|INSERT|UPDATE|DELETE|MERGE|ALTER|CREATE|DROP|GRANT|REVOKE|BEGIN|DECLARE|SET)\b"
)


def whole(name: str, text: str) -> str:
    """A statement that the fragment is part of."""
    if name == "list_log":
        return f"SELECT 1 FROM {text}"
    if name.startswith("order_by_"):
        return f"SELECT 1 FROM event_log waiting ORDER BY {text}"
    if text.startswith(","):
        return f"SELECT 1{text} FROM event_log waiting"
    if name.startswith("role_at_host"):
        return f"GRANT CREATE SESSION TO {text}"
    if name == "transaction_declared":
        return f"DECLARE\n{text};\nBEGIN\n  NULL;\nEND;"
    is_part = re.match(r"SELECT COUNT\(\*\) INTO|BEGIN\s+(?:SELECT COUNT|old_key)", text)
    if is_part or text.startswith(("IF ", "noted(")):
        return f"BEGIN\n{text};\nEND;"
    if _STATEMENT.match(text):
        return text
    if text.startswith(("(", "EXISTS")) and not text.startswith("(CASE"):
        return f"SELECT 1 FROM event_log waiting WHERE {text}"
    return f"BEGIN\n  IF found = {text} THEN\n    NULL;\n  END IF;\nEND;"
