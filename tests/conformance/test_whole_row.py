"""Tables without a key, tracked with --whole-row: what mirrors and messages tell of them is the table, equal rows counted."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states, untrack
from eventlog.cli.main import exit_code
from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import DataError, EventlogError, InstallError
from eventlog.core.rules.images import decode_image
from eventlog.core.schema import WHOLE_ROW
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.database.mirror import Mirrors
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.dialect import dialect_of, offers
from eventlog.tracked.options import Style, TrackRequest
from tests.integration.publishing import publish_all
from tests.support.logged import left_by, run
from tests.support.told import taken

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
        self.truncates = offers(dialect_of(engine), "truncate_trigger")
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
            (0.4 if self.truncates else 0, "TRUNCATE note"),
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


def published(engine: Engine, folder: Path, *, follow: bool = False) -> None:
    """Publish all waiting rows to change tables and as messages; check that no row ends as an error."""
    url = engine.url.render_as_string(hide_password=False)
    outputs: tuple[OutputConfig, ...] = (
        DatabaseOutput(url=url),
        FilesOutput(name="told", path=str(folder), format="messages", messages=MessageSettings(mode="bare")),
    )
    publishing = PublisherConfig(allow_loopback=True, query_limit=7, follow=follow)
    publish_all(Config(source=SourceConfig(url=url), publisher=publishing, output=outputs))
    with engine.connect() as connection:
        assert set(connection.execute(text("SELECT status FROM event_log")).scalars()) <= {"S"}


def rows_of(engine: Engine, table: str, columns: tuple[str, ...] = COLUMNS) -> Counter[tuple[str, ...]]:
    with engine.connect() as connection:
        rows = connection.execute(text(f"SELECT {', '.join(columns)} FROM {table}")).all()
    return Counter(tuple(map(plain, columns, row)) for row in rows)


def plain(column: str, value: Any) -> str:
    """Write a value as the same text for source and mirror, with columns perhaps of other types."""
    if value is None:
        return "NULL"
    if column in ("amount", "share", "num", "done"):
        return repr(float(value))
    if column == "photo":
        return str(bytes(value).hex())
    if column == "seen":
        return str(value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(value[:26]))
    if column == "starts":
        value = str(dt.datetime.min + value)[11:] if isinstance(value, dt.timedelta) else str(value)
        return f"{value:.8}"
    return str(value)[:10] if column == "born" else str(value)


def told(folder: Path) -> Counter[str]:
    """Count the rows left by the messages: inserted less deleted."""
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


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", ["1", pytest.param("2", marks=pytest.mark.long)])
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


def test_the_log_has_one_row_for_each_change_and_the_key_is_the_hash_of_its_text(engine: Engine) -> None:
    tracked(engine)
    rows = left_by(
        engine,
        "INSERT INTO note (num, name, body) VALUES (7, 'ä\"\\', '')",
        "UPDATE note SET num = num",
        "UPDATE note SET num = 8",
        "DELETE FROM note",
    )
    texts = [
        json.dumps({"body": "", "name": 'ä"\\', "num": num}, ensure_ascii=False, separators=(",", ":")) for num in "78"
    ]
    images = [(1, ['ä"\\', "", *[None] * 7, num]) for num in "78"]
    assert [
        (kind, column, old and decode_image(old), new and decode_image(new)) for kind, _, column, old, new in rows
    ] == [
        (5, None, None, images[0]),
        (4, None, images[0], None),
        (5, None, None, images[1]),
        (4, None, images[1], None),
    ]
    if dialect_of(engine).name != "sqlite":
        keys = [f"{WHOLE_ROW}={hashlib.sha256(text.encode()).hexdigest()}" for text in texts]
        assert [key for _, key, *_ in rows] == [keys[0], keys[0], keys[1], keys[1]]
    catalog, _, changes = taken(engine)
    assert [change.row.key.partition("=")[2] for change in changes[::3]] == [
        hashlib.sha256(text.encode()).hexdigest() for text in texts
    ]
    assert len(catalog.tables[0].attributes) == len(COLUMNS)


@pytest.mark.parametrize("follow", [False, True])
def test_rows_that_wait_and_a_column_that_comes(engine: Engine, tmp_path: Path, follow: bool) -> None:
    tracked(engine)
    run(engine, *["INSERT INTO note (name, num) VALUES ('a', 1)"] * 3)
    published(engine, tmp_path / "told")
    run(engine, *["INSERT INTO note (name, num) VALUES ('b', 2)"] * 2, "DELETE FROM note WHERE name = 'a'")
    run(engine, "ALTER TABLE note ADD COLUMN colour VARCHAR(10)", "INSERT INTO note (name, num) VALUES ('c', 3)")
    if follow:
        published(engine, tmp_path / "told", follow=True)
    else:
        track(engine, ["note"])
    run(engine, "UPDATE note SET colour = 'red' WHERE num = 3")
    run(engine, f"DELETE FROM note WHERE {Work(engine, Random(0)).one}")
    published(engine, tmp_path / "told")
    Mirrors(engine).apply()
    columns = ("name", "num", "colour")
    assert rows_of(engine, "note__mirror", columns) == rows_of(engine, "note", columns)
    assert {one.state for one in trigger_states(engine)} == {TriggerCondition.CURRENT}


def test_a_table_without_the_key_column_is_no_mirror(engine: Engine, tmp_path: Path) -> None:
    tracked(engine)
    run(engine, "INSERT INTO note (name) VALUES ('a')", "CREATE TABLE note__mirror (name VARCHAR(60))")
    published(engine, tmp_path / "told")
    with pytest.raises(DataError, match=f"note__mirror has no column {WHOLE_ROW}"):
        Mirrors(engine).apply()


def test_what_does_not_go_together_is_refused(engine: Engine) -> None:
    tracked(engine)
    for said, request in (
        ("logs images", TrackRequest(key=(WHOLE_ROW,), style=Style.FIELD)),
        ("asks about a row by its key", TrackRequest(key=(WHOLE_ROW,), when="num = 1")),
        ("named", TrackRequest(key=(WHOLE_ROW,))),
    ):
        with pytest.raises(EventlogError, match=said):
            track(engine, ["not*" if said == "named" else "note"], request)
    run(engine, f"CREATE TABLE odd (a INTEGER, {WHOLE_ROW} INTEGER)", "CREATE TABLE bare (a INTEGER)")
    with pytest.raises(InstallError, match=f"has a column {WHOLE_ROW}"):
        track(engine, ["odd"], WITHOUT_KEY)
    with pytest.raises(InstallError, match="--whole-row") as refused:
        track(engine, ["bare"])
    assert "no primary key" in str(refused.value)


def test_it_is_kept_and_taken_off_as_other_options_are(engine: Engine) -> None:
    tracked(engine)
    run(engine, "CREATE TABLE other (a INTEGER PRIMARY KEY, b INTEGER)")
    track(engine, ["other"])
    track(engine, ["note"], TrackRequest(exclude=("photo",)))
    asked = {one.asked for one in trigger_states(engine) if one.owner.endswith("note")}
    assert asked == {"--events image --exclude photo --whole-row"}
    rows = left_by(engine, "INSERT INTO note (name, photo) VALUES ('a', NULL)", "UPDATE note SET photo = NULL")
    assert [row[-1] for row in rows] == ['["2","a",null,null,null,null,null,null,null,null]']
    said: list[str] = []
    found = track(engine, ["*o*e*"], note=said.append)
    assert {one.owner.rpartition(".")[2] for one in found} == {"note", "other"}
    assert not [one for one in said if "left out" in one]
    untrack(engine, ["note"])
    assert {one.owner.rpartition(".")[2] for one in trigger_states(engine)} == {"other"}
    assert left_by(engine, "INSERT INTO note (name) VALUES ('b')", "INSERT INTO other VALUES (1, 2)") != []
    with pytest.raises(InstallError, match="no primary key"):
        track(engine, ["note"])


@pytest.mark.in_turn
def test_commands_that_cannot_do_it_say_so_and_do_the_others(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tracked(engine)
    run(engine, "CREATE TABLE other (a INTEGER PRIMARY KEY, b INTEGER)", "INSERT INTO other VALUES (1, 2)")
    track(engine, ["other"], TrackRequest(style=Style.IMAGE))
    run(engine, "INSERT INTO note (name) VALUES ('a')")
    url = engine.url.render_as_string(hide_password=False)
    config = tmp_path / "eventlog.toml"
    config.write_text(
        f'[source]\nurl = "{url}"\n[publisher]\nallow_loopback = true\n[[output]]\nsink = "database"\nurl = "{url}"\n'
    )
    at = ["--config", str(config)]
    assert exit_code(["refresh", "note", "other", *at]) == 78
    said = capsys.readouterr()
    assert "note is left out: The rows of note have no key" in said.err
    assert "other: 1 row waits" in said.out
    assert exit_code(["run", "--until-empty", *at]) == 0
    Mirrors(engine).apply()
    if getattr(engine.dialect, "is_mariadb", True):  # MySQL 9.7 has no MD5, by which verify compares
        assert exit_code(["verify", "--mirrors", *at]) == 0
        said = capsys.readouterr()
        assert "note: not compared.\n  Its rows have no key" in said.out
        assert "other: equal, 1 row" in said.out
    assert exit_code(["check", *at]) == 0
    assert "2 tables log whole rows" in capsys.readouterr().out
    with engine.connect() as connection:
        first = connection.execute(
            text("SELECT min(record_id) FROM event_log WHERE table_name LIKE '%note'")
        ).scalar_one()
    assert exit_code(["explain", str(first), *at]) == 0
    assert WHOLE_ROW in capsys.readouterr().out
    assert exit_code(["catalog", *at]) == 0
    assert exit_code(["untrack", "note", "--yes", *at]) == 0
    assert exit_code(["track", "note", *at]) == 78
    assert exit_code(["track", "note", "--whole-row", *at]) == 0
    if not offers(dialect_of(engine), "statement_trigger"):
        return
    assert exit_code(["track", "note", "--follow-ddl", *at]) == 64
    assert "--follow-ddl cannot follow that" in capsys.readouterr().err


def test_partitions_and_tables_of_another_owner_and_schema(postgresql: Engine, tmp_path: Path) -> None:
    install(postgresql)
    run(postgresql, "CREATE ROLE keeper LOGIN", "CREATE SCHEMA far AUTHORIZATION keeper")
    keeper = create_engine(postgresql.url.set(username="keeper"))
    try:
        run(
            keeper,
            "CREATE TABLE far.note (name TEXT, num INTEGER) PARTITION BY LIST (num)",
            "CREATE TABLE far.note_one PARTITION OF far.note FOR VALUES IN (1)",
            "CREATE TABLE far.note_rest PARTITION OF far.note DEFAULT",
        )
        track(postgresql, ["far.note"], WITHOUT_KEY)
        run(
            keeper,
            "INSERT INTO far.note VALUES ('a', 1), ('a', 1), ('b', NULL), ('b', NULL), (NULL, NULL)",
            "UPDATE far.note SET num = 2 WHERE ctid = (SELECT min(ctid) FROM far.note WHERE num = 1)",
            "DELETE FROM far.note WHERE name IS NULL",
        )
        published(postgresql, tmp_path / "told")
        Mirrors(postgresql).apply()
        columns = ("name", "num")
        assert rows_of(postgresql, "note__mirror", columns) == rows_of(postgresql, "far.note", columns)
        run(keeper, "TRUNCATE far.note", "INSERT INTO far.note VALUES ('a', 1)")
        published(postgresql, tmp_path / "told")
        Mirrors(postgresql).apply()
        assert rows_of(postgresql, "note__mirror", columns) == {("a", "1.0"): 1}
    finally:
        keeper.dispose()
        run(postgresql, "DROP OWNED BY keeper CASCADE", "DROP ROLE keeper")
