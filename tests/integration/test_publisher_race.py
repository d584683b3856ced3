"""Many writers at once, committing late and out of order: nothing is lost, doubled, or out of its object's order."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

from sqlalchemy import Engine, text

from eventlog.core.model import Document, Outcome
from eventlog.daemon.publisher import Publisher
from tests.integration.publishing import config_of, in_thread, site, until
from tests.support.xds_events import read_events

WRITERS = 4
TRANSACTIONS = 25


def write(engine: Engine, writer: int) -> None:
    """Transactions on objects that several writers share; each number is drawn long before its commit."""
    chance = random.Random(writer)
    for _ in range(TRANSACTIONS):
        with engine.begin() as connection:
            # Writers of one object wait for each other, as they do on a real table's row.
            key = chance.randrange(3)
            connection.execute(text("SELECT idu FROM usr WHERE idu = :key FOR UPDATE"), {"key": key})
            for _ in range(chance.randrange(1, 4)):
                connection.execute(
                    text(
                        "INSERT INTO event_log (record_id, table_name, table_key, event_type, column_name, status,"
                        " event_time, new_value) SELECT nextval('numbers'), 'usr', 'idu=' || CAST(:key AS text), 2,"
                        " 'fname', 'N', now(), CAST(nextval('moments') AS text)"
                    ),
                    {"key": key},
                )
                time.sleep(chance.random() / 200)


def test_late_commits_are_found_and_each_object_keeps_its_order(postgresql: Engine, tmp_path: Path) -> None:
    log = site(postgresql)
    log.run("CREATE SEQUENCE numbers; CREATE SEQUENCE moments; INSERT INTO usr VALUES (0), (1), (2)")
    writers = [Thread(target=write, args=(postgresql, number)) for number in range(WRITERS)]
    with in_thread(Publisher(config_of(postgresql, tmp_path / "out", query_limit=7, batch_size=3))) as publisher:
        order = watched(publisher)
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        until(lambda: set(log.statuses().values()) == {"S"}, "everything is published")
    [(rows,)] = log.ask("SELECT count(*) FROM event_log")
    assert sum(map(len, order.values())) == rows > WRITERS * TRANSACTIONS
    for key, values in order.items():
        assert values == sorted(values), key


def watched(publisher: Publisher) -> dict[str, list[int]]:
    """What was written of each object, in the order of writing; a value of an object never comes back to an earlier one."""
    [output] = publisher._outputs
    commit = output.sink.commit
    seen: dict[str, list[int]] = {}

    def commit_and_watch(plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        for document in documents:
            for event in read_events(document.body):
                values = [int(value.text) for a in event.attributes for s in a.steps for value in s.values]
                seen.setdefault(str(event.association), []).extend(values)
        return commit(plan, documents)

    output.sink.commit = commit_and_watch  # type: ignore[method-assign]  # to see what passes by
    return seen
