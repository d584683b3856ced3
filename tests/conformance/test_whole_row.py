"""Tables without a key, tracked with --whole-row: what mirrors and messages tell of them is the table, equal rows counted."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import EventlogError, InstallError, UsageError
from eventlog.core.schema import WHOLE_ROW
from eventlog.daemon.publisher import Publisher
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.database.mirror import Mirrors
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.dialect import dialect_of
from eventlog.sql.install import install
from eventlog.sql.triggers import TrackRequest, TriggerCondition, track, trigger_states, untrack
from tests.support.logged import left_by, run

WITHOUT_KEY = TrackRequest(key=(WHOLE_ROW,))
ROUNDS, STATEMENTS = 6, 25
TYPES = {
    "postgresql": {"octet": "BYTEA", "real": "DOUBLE PRECISION", "moment": "TIMESTAMP"},
    "sqlite": {"octet": "BLOB", "real": "REAL", "moment": "TIMESTAMP"},
    "mysql": {"octet": "LONGBLOB", "real": "DOUBLE", "moment": "DATETIME(6)"},
}
TABLE = (
    "CREATE TABLE note (name VARCHAR(60), body TEXT, amount NUMERIC(12, 2), share {real}, photo {octet}, born DATE,"
    " seen {moment}, starts TIME, done BOOLEAN, num INTEGER)"
)
COLUMNS = ("name", "body", "amount", "share", "photo", "born", "seen", "starts", "done", "num")
POOL: dict[str, list[Any]] = {
    "name": [None, "", "a", "A", "a ", " a", "ä", "á", 'q"\\uo,t=e{}', "null", "\U0001f600"],
    "body": [None, "x" * 5000, "X" * 5000, "x" * 4999, "line\n\ttwo", ""],
    "amount": [None, 0, 1.5, -12345678.25],
    "share": [None, 0.1, 1.0, 1e300, -2.5e-7],
    "photo": [None, b"", b"\x00\xff\x00", b"\x00" * 3000],
    "born": [None, "2024-02-29", "1900-01-01"],
    "seen": [None, "2024-02-29 23:59:59", "2024-02-29 23:59:59.123456"],
    "starts": [None, "00:00:00", "23:59:59"],
    "done": [None, True, False],
    "num": [None, 0, -7, 2147483647],
}
ONE = {
    "postgresql": "ctid = (SELECT ctid FROM note ORDER BY random() LIMIT 1)",
    "sqlite": "rowid = (SELECT rowid FROM note ORDER BY random() LIMIT 1)",
    "mysql": "1 = 1 ORDER BY rand() LIMIT 1",
}
"""A condition that one row meets, whatever rows are equal to it."""


class Work:
    """Random statements on a table without a key, in transactions some of which are rolled back."""

    def __init__(self, engine: Engine, dice: Random) -> None:
        self.engine, self.dice = engine, dice
        name = dialect_of(engine).name
        self.one = ONE.get(name, ONE["mysql"])
        self.truncates = dialect_of(engine).truncate_triggers
        self.copied = 0

    def transact(self, count: int) -> None:
        while count > 0:
            with self.engine.connect() as connection:
                for _ in range(self.dice.randint(1, 5)):
                    statement, values = self._statement()
                    connection.execute(text(statement), values)
                    count -= 1
                if self.dice.random() < 0.85:
                    connection.commit()

    def _statement(self) -> tuple[str, dict[str, Any]]:
        values = {name: self.dice.choice(pool) for name, pool in POOL.items()}
        if self.dice.random() < 0.6:  # few rows of many, so that some are equal
            values = dict.fromkeys(COLUMNS) | {"name": self.dice.choice(["a", "A", None])}
        names, holes = ", ".join(COLUMNS), ", ".join(f":{name}" for name in COLUMNS)
        column = self.dice.choice(COLUMNS)
        ways = [
            (6, f"INSERT INTO note ({names}) VALUES ({holes})"),
            (3, f"INSERT INTO note ({names}) VALUES ({holes}), ({holes})"),
            (2, f"INSERT INTO note ({names}) SELECT {names} FROM note WHERE num IS NULL"),
            (4, f"DELETE FROM note WHERE {self.one}"),
            (1, "DELETE FROM note WHERE name = :name AND num IS NULL"),
            (4, f"UPDATE note SET {column} = :{column} WHERE {self.one}"),
            (2, f"UPDATE note SET {column} = :{column} WHERE name = :name"),
            (1, "UPDATE note SET name = CASE name WHEN 'a' THEN 'A' WHEN 'A' THEN 'a' ELSE name END"),
            (1, "UPDATE note SET num = num, name = name"),
            (0.2 if self.truncates else 0, "TRUNCATE note"),
        ]
        [statement] = self.dice.choices([way for _, way in ways], [weight for weight, _ in ways])
        if "SELECT" in statement and "INSERT" in statement:
            self.copied += 1
            statement = statement if self.copied % 4 == 0 else ways[0][1]  # doubling has no end
        return statement, {name: value for name, value in values.items() if f":{name}" in statement}


def tracked(engine: Engine) -> None:
    install(engine)
    run(engine, TABLE.format(**TYPES.get(dialect_of(engine).name, TYPES["mysql"])))
    track(engine, ["note"], WITHOUT_KEY)


def published(engine: Engine, folder: Path) -> None:
    """Publishes all that waits to change tables and as messages; no row ends as an error."""
    url = engine.url.render_as_string(hide_password=False)
    outputs: tuple[OutputConfig, ...] = (
        DatabaseOutput(url=url),
        FilesOutput(name="told", path=str(folder), format="messages", messages=MessageSettings(mode="bare")),
    )
    publishing = PublisherConfig(allow_loopback=True, query_limit=7)
    with Publisher(Config(source=SourceConfig(url=url), publisher=publishing, output=outputs)) as publisher:
        for _ in publisher.rounds(until_empty=True):
            pass
    with engine.connect() as connection:
        assert set(connection.execute(text("SELECT status FROM event_log")).scalars()) <= {"S"}


def rows_of(engine: Engine, table: str, columns: tuple[str, ...] = COLUMNS) -> Counter[tuple[str, ...]]:
    with engine.connect() as connection:
        rows = connection.execute(text(f"SELECT {', '.join(columns)} FROM {table}")).all()
    return Counter(tuple(map(plain, row)) for row in rows)


def plain(value: Any) -> str:
    """A value as a text that is the same in source and mirror, whose columns may have other types."""
    if isinstance(value, memoryview):
        value = bytes(value)
    if isinstance(value, dt.timedelta):
        value = str(dt.datetime.min + value)[11:]
    if isinstance(value, str) and value[4:5] == "-" and value[13:14] == ":":
        value = dt.datetime.fromisoformat(value)
    if isinstance(value, str) and value[2:3] == ":":
        value = dt.time.fromisoformat(value)
    if isinstance(value, bool):
        value = int(value)
    return repr(float(value)) if isinstance(value, int) or hasattr(value, "as_tuple") else repr(value) + str(value)


def told(folder: Path) -> Counter[str]:
    """What the messages say that there is: what came, without what went."""
    found: Counter[str] = Counter()
    for file in sorted(folder.rglob("*")):
        for line in file.read_text().splitlines() if file.is_file() and file.suffix == ".jsonl" else ():
            said = json.loads(line)["value"]
            if "headers" not in said:
                continue
            operation = said["headers"]["operation"]
            assert operation in ("INSERT", "DELETE")
            came = operation == "INSERT"
            found[json.dumps(said["data"] if came or said["data"] else said["beforeData"], sort_keys=True)] += (
                1 if came else -1
            )
    return +found


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_mirror_is_the_table_as_a_multiset(engine: Engine, tmp_path: Path, seed: str) -> None:
    tracked(engine)
    work, equal = Work(engine, Random(seed)), 0
    for _ in range(ROUNDS):
        work.transact(STATEMENTS)
        published(engine, tmp_path / "told")
        Mirrors(engine, piece=40).apply()
        source = rows_of(engine, "note")
        assert rows_of(engine, "note__mirror") == source
        assert sorted(told(tmp_path / "told").values()) == sorted(source.values())
        equal += sum(times > 1 for times in source.values())
    assert equal > ROUNDS
