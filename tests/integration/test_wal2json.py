"""The judge: what messages and change tables tell of random transactions is what the database says itself, by wal2json.

`EVENTLOG_TRANSACTIONS=10000` asks for that many, `EVENTLOG_SEED` for others. Keys that one statement shifts into each other
are not among it: decision 28 says why. Whole transactions are told in one piece, behind those that their own came from.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.counting import count_written
from eventlog.daemon.publisher import Publisher
from eventlog.qlik.messages.write import WrittenMessage
from eventlog.sinks.outputs import FilesOutput
from tests.support import told
from tests.support.random_work import TABLES, Had, RandomWork, Row, Told, by_object, had_in, keyed, told_of, typed
from tests.support.wal2json import asked_of_wal2json, judged_database

TRANSACTIONS = int(os.environ.get("EVENTLOG_TRANSACTIONS", "120"))
A_ROUND = 60
MORE = (
    "ALTER TABLE item ALTER COLUMN note SET STORAGE EXTERNAL",
    "ALTER TABLE item REPLICA IDENTITY FULL",
    "ALTER TABLE pair REPLICA IDENTITY FULL",
)
"""Long values are not compressed, so they leave the row (TOAST)."""
WHAT_WAL2JSON_IS_ASKED = asked_of_wal2json("public.item", "public.pair")


@pytest.fixture
def judged(logical_server: str) -> Iterator[Engine]:
    with judged_database(logical_server, "judged", ["item", "pair"], *TABLES, *MORE) as engine:
        yield engine


def test_messages_and_change_tables_say_what_the_databases_own_log_says(judged: Engine) -> None:
    work = RandomWork(judged, Random(os.environ.get("EVENTLOG_SEED", "20")), truncates=True)
    stand: dict[str, dict[Any, Row]] = {"item": {}, "pair": {}}
    seen: Counter[str] = Counter()
    for start in range(0, TRANSACTIONS, A_ROUND):
        for _ in range(min(A_ROUND, TRANSACTIONS - start)):
            work.transact()
        expected = judgement(said_by_wal2json(judged), stand)
        for ours in said_by_us(judged):
            assert ours.keys() == expected.keys(), {key: ours[key][:3] for key in ours.keys() - expected.keys()}
            for transaction, changes in expected.items():
                assert by_object(ours[transaction]) == by_object(changes)
        seen.update(had_in(expected.values()))
        seen.update(change[1] for changes in expected.values() for change in changes)
    seen.update(work.had)
    assert min(seen[what] for what in ("INSERT", "UPDATE", "DELETE")) > TRANSACTIONS // 4
    assert not [what for what in Had if seen[what] < TRANSACTIONS // 100], seen


def said_by_wal2json(engine: Engine) -> list[dict[str, Any]]:
    """What the database's log has since it was asked last."""
    with engine.begin() as connection:
        found = connection.execute(text(WHAT_WAL2JSON_IS_ASKED)).scalars().all()
    return [json.loads(one, parse_float=Decimal) for one in found]


def judgement(entries: list[dict[str, Any]], stand: dict[str, dict[Any, Row]]) -> dict[int, list[Told]]:
    """What wal2json says, by transaction. A change of the key is a delete and an insert, a TRUNCATE the end of each row."""
    found: dict[int, list[Told]] = defaultdict(list)
    for entry in entries:
        table, rows = entry["table"], stand[entry["table"]]
        before, after = row_of(entry.get("identity")), row_of(entry.get("columns"))
        if before is not None and after is not None:
            after = {**before, **after}  # a long value that did not change stands in the row before only
        if entry["action"] == "T":
            changed: list[tuple[Row | None, Row | None]] = [(row, None) for row in rows.values()]
            rows.clear()
        elif before is not None and after is not None and keyed(table, before) != keyed(table, after):
            changed = [(before, None), (None, after)]
        else:
            changed = [(before, after)]
        for former, latter in changed:
            if former is not None:
                rows.pop(keyed(table, former), None)
            if latter is not None:
                rows[keyed(table, latter)] = latter
            if made := told_of(table, former, latter):
                found[entry["xid"]] += made
    return dict(found)


def row_of(columns: list[dict[str, Any]] | None) -> Row | None:
    return None if columns is None else typed({one["name"]: one["value"] for one in columns})


def said_by_us(engine: Engine) -> tuple[dict[int, list[Told]], dict[int, list[Told]]]:
    """What messages say, and what the rows of change tables say, by transaction; messages are counted without holes."""
    catalog, batch, changes = told.taken(engine)
    going_on = batch.going_on
    assert going_on is not None

    def count(written: Iterable[WrittenMessage]) -> list[WrittenMessage]:
        return count_written(list(written), {}, going_on)[0]

    messages: dict[int, list[Told]] = defaultdict(list)
    places: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for headers, said in told.messages(changes, catalog, count):
        number = int(headers["transactionId"], 16)
        messages[number].append(said)
        places[number].append((headers["transactionEventCounter"], headers["transactionLastEvent"]))
    for found in places.values():
        assert found == [(place, place == len(found)) for place in range(1, len(found) + 1)]
    rows: dict[int, list[Told]] = defaultdict(list)
    for transaction, said in told.change_rows(changes, catalog):
        rows[int.from_bytes(bytes.fromhex(transaction), "little")].append(said)
    return dict(messages), dict(rows)


TRANSACTIONS_EACH = int(os.environ.get("EVENTLOG_TRANSACTIONS", "30"))
KEYS = 40
SLOT = asked_of_wal2json("public.usr")
Said = dict[int, list[tuple[str, int]]]
"""What was done to which row, by transaction, in their order."""


@pytest.fixture
def judged_table(request: pytest.FixtureRequest, logical_server: str) -> Iterator[Engine]:
    table = "CREATE TABLE usr (idu INTEGER PRIMARY KEY, n INTEGER)"
    with judged_database(
        logical_server, request.node.name, ["usr"], table, "ALTER TABLE usr REPLICA IDENTITY FULL"
    ) as engine:
        yield engine


class Worker(Thread):
    """Transactions of several statements; one that another's locks end is tried no more."""

    def __init__(self, engine: Engine, seed: int) -> None:
        super().__init__(daemon=True)
        self.engine, self.rng = engine, random.Random(seed)

    def run(self) -> None:
        for _ in range(TRANSACTIONS_EACH):
            try:
                with self.engine.begin() as connection:
                    for _ in range(self.rng.randrange(1, 9)):
                        key = self.rng.randrange(KEYS)
                        kind = self.rng.random()
                        if kind < 0.2:
                            connection.execute(text(f"DELETE FROM usr WHERE idu = {key}"))
                        else:
                            said = f"INSERT INTO usr VALUES ({key}, 1) ON CONFLICT (idu) DO UPDATE SET n = usr.n + 1"
                            connection.execute(text(said))
            except DBAPIError:  # a deadlock
                continue


@pytest.mark.in_turn
def test_transactions_are_whole(judged_table: Engine, tmp_path: Path) -> None:
    config = Config(
        source=SourceConfig(url=judged_table.url.render_as_string(hide_password=False), user="nobody"),
        publisher=PublisherConfig(wake_up=False, polling_interval=1, query_limit=70),
        output=(FilesOutput(name="out", path=str(tmp_path), format="messages", transactions="whole"),),
    )
    workers = [Worker(judged_table, seed) for seed in range(4)]
    ended = Event()
    with Publisher(config, engine=judged_table) as publisher:
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            publisher.run_once()
        ended.set()
        for _ in publisher.rounds(until_empty=True):
            pass
    told = [json.loads(line)["value"] for line in lines_in(tmp_path)]
    assert compared(told, transactions_by_wal2json(judged_table)) > TRANSACTIONS_EACH


def lines_in(folder: Path) -> list[str]:
    return [line for file in sorted(folder.rglob("*.jsonl")) for line in file.read_text().splitlines()]


def compared(told: list[dict[str, Any]], expected: Said) -> int:
    """How many transactions are in messages as in what wal2json says: membership and order; and in one piece, counted."""
    headers, ours = [one["headers"] for one in told], transactions_by_us(told)
    assert {xid: sorted(changes) for xid, changes in ours.items()} == {
        xid: sorted(changes) for xid, changes in expected.items()
    }
    runs = [xid for xid, _ in groupby(int(one["transactionId"], 16) for one in headers)]
    assert len(runs) == len(set(runs)), "a transaction is told in two pieces"
    assert order_of_rows(ours) == order_of_rows(expected)
    for _, group in groupby(headers, key=lambda one: one["transactionId"]):
        counts = [(one["transactionEventCounter"], one["transactionLastEvent"]) for one in group]
        assert counts == [(place, place == len(counts)) for place in range(1, len(counts) + 1)]
    return len(runs)


def transactions_by_us(told: list[dict[str, Any]]) -> Said:
    found = defaultdict[int, list[tuple[str, int]]](list)
    for one in told:
        found[int(one["headers"]["transactionId"], 16)].append((one["headers"]["operation"][0], one["data"]["idu"]))
    return dict(found)


def transactions_by_wal2json(engine: Engine) -> Said:
    found = defaultdict[int, list[tuple[str, int]]](list)
    with engine.begin() as connection:
        for data in connection.execute(text(SLOT)).scalars():
            entry = json.loads(data)
            columns = entry.get("columns") or entry["identity"]
            found[entry["xid"]].append((entry["action"], next(one["value"] for one in columns if one["name"] == "idu")))
    return dict(found)


def order_of_rows(said: Said) -> dict[int, list[tuple[int, str]]]:
    """What was done to each row, in which transactions."""
    found = defaultdict[int, list[tuple[int, str]]](list)
    for xid, changes in said.items():
        for action, key in changes:
            found[key].append((xid, action))
    return dict(found)
