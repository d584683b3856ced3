"""Event logs as somebody else made them, for the commercial driver: how they look, and the rows that its documentation prints."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Engine, inspect, text

from eventlog.core.times import in_zone
from eventlog.sql.clocks import zone_of
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import NEW_ORDER, OLD_ORDER, STANDARD, LogNames

SCHEMA = "indirect"
"""Where the documentation's tables stand."""

FREE = ("id", "state", "kind", "at", "who", "tab", "pk", "col", "was", "is_now")
"""Names that say nothing, in the order of STANDARD."""
SORTED = ("A1", "C3", "D4", "E5", "F6", "G7", "B2", "a8", "b9", "c10")
"""Names that are in the new order once they are sorted by their bytes, and in none by their letters."""


class Existing(Struct, frozen=True, kw_only=True):
    """A log as somebody made it. `names` are its columns in the order of STANDARD, `order` is where they stand.

    `types` are those of the columns that are not ordinary; what begins with the name of a database and a point is for that one.
    `numbered` is who gives record_ids: a sequence, the column itself, or the triggers. `clock` is whose time the triggers write.
    """

    table: str = "indirect_process"
    schema: str | None = None
    names: tuple[str, ...] = STANDARD
    order: tuple[str, ...] = NEW_ORDER
    types: Mapping[str, str] = {}
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    key: bool = True
    columns: str | tuple[str, ...] = "auto"
    numbered: str = "by triggers"
    clock: str = "utc"

    def name(self, standard: str) -> str:
        return self.names[STANDARD.index(standard)]

    def whole(self, engine: Engine) -> LogNames:
        """Return the log's names in a database, with the schema if it has schemas."""
        return LogNames(table=self.table, schema=self.schema if has_schemas(engine) else None, clock=self.clock)


UPPER = tuple(name.upper() for name in STANDARD)
CAMEL = tuple(name.title().replace("_", "") for name in STANDARD)

CASES = {
    "new order": Existing(),
    "old order": Existing(order=OLD_ORDER),
    "some other order": Existing(order=tuple(reversed(STANDARD))),
    "free names, new order": Existing(names=FREE),
    "free names, old order": Existing(names=FREE, order=OLD_ORDER),
    "free names, order said": Existing(names=FREE, order=OLD_ORDER, columns="old"),
    "free names, listed": Existing(names=FREE, order=tuple(sorted(STANDARD)), columns=FREE),
    "names that sort right": Existing(names=SORTED, order=tuple(sorted(STANDARD)), columns="new by bytes"),
    "upper-case names": Existing(table="EVENTLOG", names=UPPER),
    "mixed names that need quotes": Existing(table="Event Log", names=("Id", "St", *FREE[2:-1], "New Value")),
    "a date": Existing(types={"event_time": "DATE"}),
    "a time of day without parts of a second": Existing(
        types={"event_time": "TIMESTAMP(0)", "mysql.event_time": "DATETIME(0)"}
    ),
    "a time with a zone": Existing(
        types={"event_time": "TIMESTAMP WITH TIME ZONE", "mysql.event_time": "TIMESTAMP NULL"}
    ),
    "numbers with a scale of nothing": Existing(types={"record_id": "NUMERIC(19,0)", "event_type": "NUMERIC(2)"}),
    "further columns": Existing(after=("note_of_ours VARCHAR(9) DEFAULT 'ours'", "shard INTEGER DEFAULT 7")),
    "further columns in front": Existing(before=("shard INTEGER DEFAULT 7",)),
    "no key": Existing(key=False),
    "short texts": Existing(types={"table_key": "CHAR(12)", "table_name": "CHAR(9)", "status": "VARCHAR(3)"}),
}
"""Logs that differ in one thing each."""

LONG = dict.fromkeys(("table_key", "old_value", "new_value"), "VARCHAR(4000)")
AS_ON_ORACLE = {
    "record_id": "NUMERIC(20,0)",
    "event_type": "NUMERIC(3,0)",
    "perpetrator": "VARCHAR(128)",
    **LONG,
    "event_time": "TIMESTAMP(0)",
    "mysql.event_time": "DATETIME",
    "sqlite.event_time": "DATE",
}
"""NUMBER(20), NUMBER(3), VARCHAR2(n) and DATE, which has a time of day."""
AS_ON_SQL_SERVER = {
    "record_id": "BIGINT GENERATED ALWAYS AS IDENTITY",
    "mysql.record_id": "BIGINT AUTO_INCREMENT",
    **LONG,
    "sqlite.record_id": "INTEGER",
    "event_type": "SMALLINT",
    "perpetrator": "CHAR(30)",
    "event_time": "TIMESTAMP(3)",
    "mysql.event_time": "DATETIME(3)",
    **{f"mysql.{name}": "NVARCHAR(4000)" for name in LONG},
}
"""BIGINT IDENTITY, SMALLINT, NCHAR and NVARCHAR, DATETIME with milliseconds."""

LAYOUTS = {
    "version 2.0, Tokyo": Existing(schema=SCHEMA, order=OLD_ORDER, clock="Asia/Tokyo"),
    "version 4.x, in UTC": Existing(schema=SCHEMA, table="direct_process", numbered="itself", types=AS_ON_SQL_SERVER),
    "as on Oracle, New York": Existing(
        schema=SCHEMA,
        table="INDIRECT_PROCESS",
        names=UPPER,
        types=AS_ON_ORACLE,
        numbered="by a sequence",
        clock="America/New_York",
    ),
    "as on SQL Server, Berlin": Existing(
        schema=SCHEMA, table="EventLog", names=CAMEL, types=AS_ON_SQL_SERVER, numbered="itself", clock="Europe/Berlin"
    ),
    "own names, old order, Berlin": Existing(
        schema=SCHEMA, table="Journal", names=FREE, order=OLD_ORDER, types=LONG, clock="Europe/Berlin"
    ),
}
"""Logs as the documentation and the database of their makers give them."""

TYPES = {
    "record_id": "BIGINT",
    "status": "CHAR(1)",
    "event_type": "INTEGER",
    "event_time": "TIMESTAMP",
    "mysql.event_time": "DATETIME",
    "sqlite.event_time": "DATETIME",
    "perpetrator": "VARCHAR(30)",
    "table_name": "VARCHAR(64)",
    "table_key": "VARCHAR(255)",
    "column_name": "VARCHAR(64)",
    "old_value": "VARCHAR(2000)",
    "new_value": "VARCHAR(2000)",
}


def has_schemas(engine: Engine) -> bool:
    """Return True if a schema is something other than a database here."""
    return dialect_of(engine).schemas


def make(engine: Engine, existing: Existing) -> None:
    """Make the log."""
    name = dialect_of(engine).name
    quote = dialect_of(engine).quote
    types = {**TYPES, **existing.types}
    types |= {column.removeprefix(f"{name}."): found for column, found in types.items() if column.startswith(name)}
    if name == "sqlite" and "sqlite.event_time" not in existing.types:
        types["event_time"] = TYPES["sqlite.event_time"]
    if existing.numbered == "by a sequence":
        types["record_id"] += f" DEFAULT {_next_number(engine, existing)}"
    own = [f"{quote(existing.name(standard))} {types[standard]}" for standard in existing.order]
    key = [f"PRIMARY KEY ({quote(existing.name('record_id'))})"] if existing.key else []
    parts = ", ".join([*existing.before, *own, *existing.after, *key])
    with engine.begin() as connection:
        if existing.numbered == "by a sequence":
            connection.execute(text(f"CREATE SEQUENCE {placed(engine, existing, 'EVENT_SEQ')} START WITH 1"))
        connection.execute(text(f"CREATE TABLE {placed(engine, existing, existing.table)} ({parts})"))


def _next_number(engine: Engine, existing: Existing) -> str:
    sequence = placed(engine, existing, "EVENT_SEQ")
    return f"nextval('{sequence}')" if has_schemas(engine) else f"nextval({sequence})"


def placed(engine: Engine, existing: Existing, name: str) -> str:
    """Quote a name with the log's schema, if there is one."""
    quote = dialect_of(engine).quote
    schema = existing.whole(engine).schema
    return quote(name) if schema is None else f"{quote(schema)}.{quote(name)}"


def write(connection: Connection, existing: Existing, row: Mapping[str, Any]) -> None:
    """Write a row as a trigger of somebody else does."""
    quote = dialect_of(connection).quote
    columns = ", ".join(quote(existing.name(standard)) for standard in row)
    values = ", ".join(f":{standard}" for standard in row)
    place = placed(connection.engine, existing, existing.table)
    connection.execute(text(f"INSERT INTO {place} ({columns}) VALUES ({values})"), dict(row))


def shape(engine: Engine, existing: Existing) -> Any:
    """Read all the database tells of the table, and every cell but the statuses."""
    inspector = inspect(engine)
    schema = existing.whole(engine).schema
    columns = [
        (column["name"], str(column["type"]), column["default"])
        for column in inspector.get_columns(existing.table, schema)
    ]
    rest = (inspector.get_indexes, inspector.get_check_constraints, inspector.get_unique_constraints)
    quote = dialect_of(engine).quote
    kept = ", ".join(quote(name) for name, *_ in columns if name != existing.name("status"))
    place = placed(engine, existing, existing.table)
    with engine.connect() as connection:
        cells = sorted(map(str, connection.execute(text(f"SELECT {kept} FROM {place}"))))
    key = inspector.get_pk_constraint(existing.table, schema)
    return columns, key, [ask(existing.table, schema) for ask in rest], cells


def statuses(engine: Engine, existing: Existing) -> dict[int, str]:
    """Read the statuses of the rows by their numbers."""
    quote = dialect_of(engine).quote
    columns = f"{quote(existing.name('record_id'))}, {quote(existing.name('status'))}"
    place = placed(engine, existing, existing.table)
    with engine.connect() as connection:
        found = connection.execute(text(f"SELECT {columns} FROM {place} ORDER BY 1"))
        return {int(number): str(status) for number, status in found}


# ---- the documentation's tables and rows

BYTES = {"postgresql": "BYTEA", "mysql": "VARBINARY(30)", "sqlite": "VARBINARY(30)"}


def make_tables(engine: Engine) -> None:
    """Make the documentation's tables as they are when its log is read: usr, a view of it, a compound key."""
    photo = BYTES[dialect_of(engine).name]
    place = f"{SCHEMA}." if has_schemas(engine) else ""
    with engine.begin() as connection:
        if place:
            connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))
        connection.execute(
            text(
                f"CREATE TABLE {place}usr (idu INTEGER NOT NULL, fname VARCHAR(64), lname VARCHAR(64), photo {photo},"
                " CONSTRAINT pk_usr_idu PRIMARY KEY (idu))"
            )
        )
        connection.execute(
            text(f"CREATE VIEW {place}view_usr AS SELECT idu AS pk_empno, fname AS sv_fname, lname FROM {place}usr")
        )
        connection.execute(
            text(
                f"CREATE TABLE {place}part (pkey1 VARCHAR(40) NOT NULL, pkey2 INTEGER NOT NULL, name VARCHAR(40),"
                " PRIMARY KEY (pkey1, pkey2))"
            )
        )
        row = {"photo": b"\xbb\xbb"}
        connection.execute(
            text(f"INSERT INTO {place}usr VALUES (1, 'John', 'Doe', :photo), (2, 'Ida', NULL, NULL)"), row
        )
        connection.execute(text(f"INSERT INTO {place}part VALUES (:key, 7, 'bolt')"), {"key": ODD_KEY})


ODD_KEY = ", ; ' + \" = \\ < >"
ODD = 'pkey1=", ; \' + \\" = \\\\ < >"'
"""A key with all characters that must be quoted, as the documentation quotes them."""


def fields(kind: int, key: str, *changes: tuple[str, str | None, str | None], **others: Any) -> list[dict[str, Any]]:
    """Make the rows of per-field events."""
    return [
        {"event_type": kind, "table_key": key, "column_name": column, "old_value": old, "new_value": new, **others}
        for column, old, new in changes
    ]


ADDED = (("fname", None, "Jack"), ("lname", None, "Frost"), ("photo", None, "qqo="))
CHANGED = (("fname", "Jack", "John"), ("lname", "Frost", "Doe"), ("photo", "qqo=", "u7s="))

DOCUMENTED: tuple[dict[str, Any], ...] = (
    *fields(1, "idu=1", *ADDED, event_time="2025-01-15 12:00:00"),  # tables 5-16 to 5-20 of the documentation
    *fields(2, "idu=1", *CHANGED, event_time="2025-03-30 00:59:59"),  # a second before Berlin sets its clocks forward
    *fields(3, "idu=3", *CHANGED, event_time="2025-03-30 01:00:00"),
    {"event_type": 4, "table_key": "idu=1", "event_time": "2025-10-26 00:30:00"},  # the hour that comes twice in Berlin
    {"event_type": 5, "table_key": "idu=1", "event_time": "2025-11-02 05:30:00"},  # that in New York
    {"event_type": 6, "table_key": "idu= 2", "event_time": "2025-11-02 07:00:00"},
    {"event_type": 5, "table_key": "pk_empno=1", "table_name": "view_usr", "event_time": "2025-11-02 07:00:01"},
    *fields(1, f"{ODD}+pkey2=7", ("name", None, "bolt"), table_name="part", event_time="2025-11-02 07:00:02"),
    # A query-back beats its counterpart, that of a row one of a field; what is gone is left out.
    *fields(2, f"{ODD}+pkey2=7", ("name", "bolt", "nut"), table_name="part", event_time="2025-11-02 07:00:03"),
    *fields(8, f"{ODD}+pkey2=7", ("name", None, None), table_name="part", event_time="2025-11-02 07:00:04"),
    *fields(7, "pk_empno=2", ("sv_fname", None, None), table_name="view_usr", event_time="2025-11-02 07:00:05"),
    {"event_type": 6, "table_key": "idu=4", "event_time": "2025-11-02 07:00:06"},
    # Rows of the driver's own user are not published, those of NULL are; other letters are nobody's.
    *fields(2, "idu=2", ("fname", "Ada", "Ida"), perpetrator="idm", event_time="2025-11-02 07:00:07"),
    {"event_type": 4, "table_key": "idu=5", "perpetrator": "hr", "event_time": "2025-11-02 07:00:08"},
    {"event_type": 4, "table_key": "idu=6", "status": "X", "event_time": "2025-11-02 07:00:09"},
    {"event_type": 4, "table_key": "idu=7", "event_time": "2025-12-31 23:59:59"},
)
"""The rows that the documentation prints and what it says of others; their times are UTC."""


def write_documented(engine: Engine, existing: Existing, rows: Iterable[dict[str, Any]] = DOCUMENTED) -> None:
    """Write the rows with the time of the triggers' clock, numbered 1, 2, 3 whoever numbers them."""
    zone = zone_of(existing.clock)
    with engine.begin() as connection:
        for number, row in enumerate(rows, 1):
            local = in_zone(dt.datetime.fromisoformat(row["event_time"]), zone)
            numbered: dict[str, Any] = {"record_id": number} if existing.numbered == "by triggers" else {}
            usual = {"status": "N", "table_name": "usr"}
            write(connection, existing, numbered | usual | row | {"event_time": str(local)})
