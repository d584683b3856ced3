"""A database with a log and tables to track: runs changes, and tells the rows that they left in the log."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Engine, event, text

from eventlog.capture.track import track_sql
from eventlog.core.rules.images import decode_image, encode_image
from eventlog.sql.dialect import dialect_of, log_holes
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TriggerOptions

Logged = tuple[int, str, str | None, str | None, str | None]
"""event_type, table_key, column_name, old_value, new_value."""

USR = (
    "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64), lname VARCHAR(64), age INTEGER)",
    """CREATE TABLE usr_phone (idu INTEGER, phoneno VARCHAR(32), UNIQUE (idu, phoneno),
       FOREIGN KEY (idu) REFERENCES usr (idu) ON DELETE CASCADE)""",
)


def run(engine: Engine, *statements: str) -> None:
    """Runs statements in one transaction, with foreign keys enforced and colons being colons."""
    with engine.connect() as connection:
        if dialect_of(engine).embedded:
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
        for statement in statements:
            connection.execute(text(statement.replace(":", "\\:")))
        connection.commit()


def logged(engine: Engine, names: LogNames | None = None) -> list[Logged]:
    """Read the log's rows in order; images in one spelling for all databases."""
    names = names or LogNames()
    holes = log_holes(dialect_of(engine), names)
    wanted = ("event_type", "table_key", "column_name", "old_value", "new_value")
    columns = ", ".join(holes[name] for name in wanted)
    with engine.connect() as connection:
        rows = connection.execute(text(f"SELECT {columns} FROM {holes['log']} ORDER BY {holes['record_id']}"))
        return [(row[0], row[1], row[2], _image(row[3], row[2]), _image(row[4], row[2])) for row in rows]


def _image(text: str | None, column: str | None) -> str | None:
    image = decode_image(text) if text and column is None else None
    return text if image is None else encode_image(*image)


def left_by(engine: Engine, *statements: str) -> list[Logged]:
    """Run the statements; return the rows they log."""
    run(engine, "DELETE FROM event_log")
    run(engine, *statements)
    return logged(engine)


def unnumbered(row: Logged) -> Logged:
    """Remove the number of its definition from a row: several may have the same columns."""
    kind, key, column, *values = row
    old, new = (value if value is None else re.sub(r'^\["\d+"', '["N"', value) for value in values)
    return kind, key, column, old, new


def said_of(engine: Engine, tables: list[str], options: TriggerOptions | None = None) -> list[str]:
    """Return the notes of `track` for these tables and options; creates nothing."""
    said: list[str] = []
    track_sql(engine, tables, options or TriggerOptions(), note=said.append)
    return said


def with_bare_names(engine: Engine) -> Engine:
    """Let a test's own statements name tables without a schema, on an engine as commands have it."""

    def search(session: Any, _record: Any) -> None:
        session.cursor().execute("SET search_path = public")
        session.commit()

    if engine.dialect.name == "postgresql":
        event.listen(engine, "connect", search)
    return engine
