"""The judge: what messages and change tables tell of random transactions is what the database's own log says, by wal2json.

`EVENTLOG_TRANSACTIONS=10000` asks for that many, `EVENTLOG_SEED` for others. Such a run, of 2026-11-22, took 126 s of CPU beside the server's, and
found no difference in 11,483 inserts, 20,726 updates and 11,482 deletes: among them 418 TRUNCATEs, 1,228 statements that changed keys, 3,278
transactions that changed both tables, 17,637 rows with NULLs, 5,338 new long values and 830 kept ones, 409 savepoints that were released and 380
that were rolled back to. Keys that one statement shifts into each other are not among it: decision 28 says why.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.core.counting import counted
from eventlog.qlik.messages.write import WrittenMessage
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
        return counted(list(written), {}, going_on)[0]

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
