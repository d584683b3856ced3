"""The judge: what messages and change tables tell of random transactions is what the database's own log says, by wal2json.

`EVENTLOG_TRANSACTIONS=10000` asks for that many.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.core.rules import Round
from eventlog.core.schema import Catalog
from eventlog.core.seams import encode
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.rows import RowsDocument
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.log.source import LogSource
from eventlog.sql.findlog import log_columns
from eventlog.sql.install import install
from eventlog.sql.names import LogNames
from eventlog.sql.triggers import Style, TriggerOptions, track, tracked
from eventlog.sql.triggers.track import with_schema
from tests.support.logged import run

TRANSACTIONS = int(os.environ.get("EVENTLOG_TRANSACTIONS", "120"))
A_ROUND = 60
TABLES = (
    "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, note TEXT, amount NUMERIC(12, 2), born DATE, done BOOLEAN)",
    "ALTER TABLE item ALTER COLUMN note SET STORAGE EXTERNAL",
    "CREATE TABLE pair (a INTEGER, b TEXT, v INTEGER, PRIMARY KEY (a, b))",
    "ALTER TABLE item REPLICA IDENTITY FULL",
    "ALTER TABLE pair REPLICA IDENTITY FULL",
)
KEYS = {"item": ("id",), "pair": ("a", "b")}
TYPES = {
    "id": int,
    "a": int,
    "v": int,
    "amount": Decimal,
    "name": str,
    "note": str,
    "b": str,
    "born": str,
    "done": bool,
}
MANY = (
    "INSERT INTO item SELECT n, :name, NULL, n, CAST(:born AS date), NULL FROM generate_series(:id, :id + 3) AS n"
    " ON CONFLICT (id) DO UPDATE SET name = :name, done = :done"
)
ODD = ["", "a", "b", "'q\"\\+=,;", "{ü}\n\t", " x "]
WHAT_WAL2JSON_IS_ASKED = (
    "SELECT data FROM pg_logical_slot_get_changes('judge', NULL, NULL, 'format-version', '2', 'include-xids', 'true',"
    " 'include-transaction', 'false', 'add-tables', 'public.item,public.pair')"
)

Row = dict[str, Any]
Told = tuple[str, str, Any, Any]
"""Table, operation, row before and after as sorted pairs."""


@pytest.fixture
def judged(logical_server: str) -> Iterator[Engine]:
    admin = create_engine(logical_server + "postgres", isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("CREATE DATABASE judged"))
    engine = create_engine(logical_server + "judged")
    install(engine)
    run(engine, *TABLES)
    track(engine, ["item", "pair"], TriggerOptions(style=Style.IMAGE))
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_create_logical_replication_slot('judge', 'wal2json')"))
    yield engine
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_drop_replication_slot('judge')"))
    engine.dispose()
    admin.dispose()


def test_messages_and_change_tables_say_what_the_databases_own_log_says(judged: Engine) -> None:
    chance = random.Random(os.environ.get("EVENTLOG_SEED", "20"))
    stand: dict[str, dict[Any, Row]] = {"item": {}, "pair": {}}
    seen: Counter[str] = Counter()
    for start in range(0, TRANSACTIONS, A_ROUND):
        for _ in range(min(A_ROUND, TRANSACTIONS - start)):
            transact(judged, chance)
        expected = judgement(judged, stand)
        messages, rows = ours(judged)
        for told in (messages, rows):
            assert told.keys() == expected.keys(), {key: told[key][:3] for key in told.keys() - expected.keys()}
            for transaction, changes in expected.items():
                assert by_object(told[transaction]) == by_object(changes)
        seen.update(change[1] for changes in expected.values() for change in changes)
    assert min(seen[what] for what in ("INSERT", "UPDATE", "DELETE")) > TRANSACTIONS // 4


def transact(engine: Engine, chance: random.Random) -> None:
    """One transaction with nested savepoints; a few are rolled back."""
    with engine.connect() as connection:
        depth = 0
        for _ in range(chance.randint(1, 9)):
            what = chance.random()
            if what < 0.2:
                connection.execute(text(f"SAVEPOINT s{depth}"))
                depth += 1
            elif what < 0.35 and depth:
                depth -= 1
                how = chance.choice(["RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT"])
                connection.execute(text(f"{how} s{depth}"))
            else:
                change(connection, chance)
        connection.rollback() if chance.random() < 0.1 else connection.commit()


def change(connection: Connection, chance: random.Random) -> None:
    """One statement; one that the database refuses is taken back by a savepoint of its own."""
    values = {
        "id": chance.randint(1, 12),
        "other": chance.randint(1, 14),
        "name": chance.choice([*ODD, None]),
        "note": chance.choice([None, "short", chance.randbytes(3000).hex()]),
        "amount": chance.choice([None, Decimal("0.10"), Decimal("-12.5"), Decimal(chance.randint(0, 10**9)) / 100]),
        "born": chance.choice([None, "2024-02-29", "1970-01-01"]),
        "done": chance.choice([None, True, False]),
    }
    statement = chance.choices(
        [
            "INSERT INTO item VALUES (:id, :name, :note, :amount, :born, :done)",
            MANY,
            "UPDATE item SET name = :name, done = :done WHERE id = :id",
            "UPDATE item SET note = :note, amount = :amount WHERE id >= :id",
            "UPDATE item SET name = name, note = note",
            "UPDATE item SET id = :other WHERE id = :id",
            "DELETE FROM item WHERE id = :id",
            "DELETE FROM item WHERE id > :id",
            "INSERT INTO pair VALUES (:id, coalesce(:name, 'n'), :other)",
            "UPDATE pair SET v = :other WHERE a < :id",
            "UPDATE pair SET b = coalesce(:name, 'n'), v = NULL WHERE a = :id AND v = :other",
            "DELETE FROM pair WHERE a = :id",
            "TRUNCATE item",
            "TRUNCATE item, pair",
        ],
        [8, 2, 5, 4, 1, 4, 3, 1, 6, 2, 3, 2, 0.3, 0.2],
    )[0]
    connection.execute(text("SAVEPOINT mine"))
    try:
        connection.execute(text(statement), values)
    except DBAPIError:
        connection.execute(text("ROLLBACK TO SAVEPOINT mine"))


def judgement(engine: Engine, stand: dict[str, dict[Any, Row]]) -> dict[int, list[Told]]:
    """What wal2json says, by transaction. A change of the key is a delete and an insert, a TRUNCATE the end of each row."""
    found: dict[int, list[Told]] = defaultdict(list)
    with engine.begin() as connection:
        entries = [
            json.loads(data, parse_float=Decimal) for (data,) in connection.execute(text(WHAT_WAL2JSON_IS_ASKED))
        ]
    for entry in entries:
        table, rows = entry["table"], stand[entry["table"]]
        before, after = row_of(entry.get("identity")), row_of(entry.get("columns"))
        if before is not None and after is not None:
            after = {**before, **after}  # a long value that did not change stands in the row before only
        if entry["action"] == "T":
            gone, rows_after = list(rows.values()), []
            rows.clear()
        elif before is not None and after is not None and keyed(table, before) == keyed(table, after):
            if before != after:
                found[entry["xid"]].append((table, "UPDATE", pairs(before), pairs(after)))
            rows[keyed(table, after)] = after
            continue
        else:
            gone, rows_after = [before] if before else [], [after] if after else []
        for row in gone:
            rows.pop(keyed(table, row), None)
            found[entry["xid"]].append((table, "DELETE", None, pairs(row)))
        for row in rows_after:
            rows[keyed(table, row)] = row
            found[entry["xid"]].append((table, "INSERT", None, pairs(row)))
    return dict(found)


def ours(engine: Engine) -> tuple[dict[int, list[Told]], dict[int, list[Told]]]:
    """What messages say, and what the rows of change tables say, by transaction; the log is empty afterwards."""
    with engine.connect() as connection:
        catalog = Catalog(tracked(connection, with_schema(connection, LogNames())))
    names = log_columns(engine, LogNames())
    events = LogSource(engine, names, catalog, LogSettings(transactions=True)).read(0).events
    decision = Round(catalog=catalog).decide(events)
    assert not decision.outcomes.others
    messages: dict[int, list[Told]] = defaultdict(list)
    for document in encode(MessageFormat(settings=MessageSettings(mode="bare")), decision.changes, catalog, ""):
        assert isinstance(document, MessagesDocument)
        for message in document.messages:
            said = json.loads(message.value or b"")
            told = (said["headers"]["operation"], typed(said["beforeData"]), typed(said["data"]))
            messages[int(said["headers"]["transactionId"], 16)].append((message.topic.rpartition(".")[2], *told))
    rows: dict[int, list[Told]] = defaultdict(list)
    for document in encode(ChangeTableFormat(settings=ChangeTableSettings()), decision.changes, catalog, ""):
        assert isinstance(document, RowsDocument)
        for block in document.blocks:
            former = None
            own = [column.name for column in block.columns[7:]]
            for row in block.rows:
                values = typed(dict(zip(own, row[7:], strict=True)))
                if row[1] == "B":
                    former = values
                    continue
                number = int.from_bytes(bytes.fromhex(str(row[5])), "little")
                rows[number].append((block.table.name, str(row[4]), former, values))
                former = None
    run(engine, "DELETE FROM event_log", "DELETE FROM event_log_mark")
    return dict(messages), dict(rows)


def by_object(changes: list[Told]) -> dict[Any, list[Told]]:
    """The changes of each object in their order; in what order one statement changes several rows is nobody's business."""
    found: dict[Any, list[Told]] = defaultdict(list)
    for one in changes:
        found[one[0], keyed(one[0], dict(one[3]))].append(one)
    return dict(found)


def row_of(columns: list[dict[str, Any]] | None) -> Row | None:
    return None if columns is None else {one["name"]: value_of(one["name"], one["value"]) for one in columns}


def typed(row: Row | None) -> Any:
    return None if row is None else pairs({name: value_of(name, value) for name, value in row.items()})


def value_of(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    return TYPES[name](str(value))


def pairs(row: Row) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(row.items()))


def keyed(table: str, row: Row) -> Any:
    return tuple(row[name] for name in KEYS[table])
