"""An installed log for tests of sources, and short ways to write rows into it and to see what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames

NAMES = LogNames()


class LogTable:
    """An event log in a database, as a trigger or a person with a SQL prompt sees it."""

    def __init__(self, engine: Engine, names: LogNames = NAMES) -> None:
        self.engine = engine
        self.names = names

    def run(self, sql: str, rows: Any = None) -> None:
        with self.engine.begin() as connection:
            connection.execute(text(sql), rows)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(sql))]

    def write(self, number: int, key: str = "idu=1", **columns: Any) -> int:
        """Write one row with ordinary values in all columns not given; return its number."""
        row = {"record_id": number, "table_key": key, "status": "N", "event_type": 1, "table_name": "usr"}
        row |= {"event_time": "2025-03-23 10:57:19", "column_name": "fname", "new_value": "Jack"} | columns
        names = ", ".join(row)
        self.run(f"INSERT INTO event_log ({names}) VALUES ({', '.join(map(':{}'.format, row))})", row)
        return number

    def write_all(self, numbers: Iterable[int], key: str = "idu=1") -> None:
        sql = (
            "INSERT INTO event_log (record_id, table_key, status, event_type, event_time, table_name, column_name)"
            " VALUES (:n, :key, 'N', 1, '2025-03-23 10:57:19', 'usr', 'fname')"
        )
        self.run(sql, [{"n": number, "key": key} for number in numbers])

    def statuses(self) -> dict[int, str]:
        return dict(self.ask("SELECT record_id, status FROM event_log ORDER BY record_id"))

    def outcomes(self) -> dict[int, tuple[Any, ...]]:
        """Status, reason and note by record_id."""
        found = self.ask("SELECT record_id, status, reason, note FROM event_log_outcome ORDER BY record_id")
        return {number: tuple(rest) for number, *rest in found}


def installed(engine: Engine) -> LogTable:
    """Make a new log without the constraints of our own installation: adopted logs hold anything."""
    make_log(engine)
    install(engine, NAMES)
    return LogTable(engine)


def make_log(engine: Engine) -> None:
    """Make a log as somebody else would."""
    time = "DATETIME(6)" if dialect_of(engine).name == "mysql" else "TIMESTAMP"  # MySQL's ends in 2038
    ddl = (
        "CREATE TABLE event_log (record_id BIGINT NOT NULL, table_key VARCHAR(4000), status VARCHAR(3),"
        f" event_type INTEGER, event_time {time}, perpetrator VARCHAR(40), table_name VARCHAR(80),"
        " column_name VARCHAR(80), old_value TEXT, new_value TEXT)"
    )
    with engine.begin() as connection:
        connection.execute(text(ddl))
