"""`transactions = "whole"`, judged by wal2json: each transaction is told in one piece, with all of its changes, and behind
those that its own came from. So it is by a publisher while others write, and by a conversion afterwards.
"""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from tests.support.wal2json import asked_of_wal2json, judged_database

TRANSACTIONS = int(os.environ.get("EVENTLOG_TRANSACTIONS", "30"))
KEYS = 40
SLOT = asked_of_wal2json("public.usr")
Said = dict[int, list[tuple[str, int]]]
"""What was done to which row, by transaction, in their order."""


@pytest.fixture
def judged(request: pytest.FixtureRequest, logical_server: str) -> Iterator[Engine]:
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
        for _ in range(TRANSACTIONS):
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
def test_transactions_are_whole(judged: Engine, tmp_path: Path) -> None:
    config = Config(
        source=SourceConfig(url=judged.url.render_as_string(hide_password=False), user="nobody"),
        publisher=PublisherConfig(wake_up=False, polling_interval=1, query_limit=70),
        output=(FilesOutput(name="out", path=str(tmp_path), format="messages", transactions="whole"),),
    )
    workers = [Worker(judged, seed) for seed in range(4)]
    ended = Event()
    with Publisher(config, engine=judged) as publisher:
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            publisher.run_once()
        ended.set()
        for _ in publisher.rounds(until_empty=True):
            pass
    told = [json.loads(line)["value"] for line in lines_in(tmp_path)]
    assert compared(told, said_by_wal2json(judged)) > TRANSACTIONS


def lines_in(folder: Path) -> list[str]:
    return [line for file in sorted(folder.rglob("*.jsonl")) for line in file.read_text().splitlines()]


def compared(told: list[dict[str, Any]], expected: Said) -> int:
    """How many transactions are in messages as in what wal2json says: membership and order; and in one piece, counted."""
    headers, ours = [one["headers"] for one in told], said_by_us(told)
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


def said_by_us(told: list[dict[str, Any]]) -> Said:
    found = defaultdict[int, list[tuple[str, int]]](list)
    for one in told:
        found[int(one["headers"]["transactionId"], 16)].append((one["headers"]["operation"][0], one["data"]["idu"]))
    return dict(found)


def said_by_wal2json(engine: Engine) -> Said:
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
