"""Writers that wait for each other, fail, give up, commit late and number out of order: only what stands is published."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.daemon.publisher import Publisher
from tests.hardening.contending import (
    DEADLOCK,
    SERIALIZATION,
    Ledger,
    Received,
    by_name,
    deadlock,
    half_undone,
    held_open,
    name,
    overtaken,
    skewed,
    together,
)
from tests.hardening.crash import prepare
from tests.hardening.ledger.runs import waiting
from tests.hardening.quantity import scaled
from tests.integration.publishing import config_of, in_thread, until

USERS = 8
LAST = 99
"""A user of whom nobody knows but the one who commits last."""
AT_A_TIME = 50
"""Numbers that a session takes at once."""


def users(engine: Engine) -> None:
    with engine.begin() as connection:
        for idu in (*range(USERS), LAST):
            connection.execute(text("INSERT INTO usr VALUES (:idu, 'first', NULL)"), {"idu": idu})


def published(engine: Engine) -> int:
    """The highest number that was published."""
    with engine.connect() as connection:
        return int(
            connection.execute(
                text("SELECT coalesce(max(record_id), 0) FROM event_log WHERE status = 'S'")
            ).scalar_one()
        )


def drawn(engine: Engine, idu: int) -> int:
    with engine.connect() as connection:
        sql = text("SELECT max(record_id) FROM event_log WHERE table_key = :key")
        return int(connection.execute(sql, {"key": f"idu={idu}"}).scalar_one())


@pytest.mark.in_turn
@pytest.mark.parametrize("style", ["field", "row-back", "field-back"])
def test_nothing_of_an_aborted_transaction_is_published(postgresql: Engine, tmp_path: Path, style: str) -> None:
    prepare(postgresql, style)
    users(postgresql)
    ledger, received = Ledger(), Received()
    config = config_of(postgresql, tmp_path, query_limit=5, polling_interval=1)
    rounds = scaled(3)
    with in_thread(Publisher(config, outputs=received.output())):
        with held_open(postgresql, ledger, LAST, "last"):
            for number in range(rounds):
                together(
                    [
                        *deadlock(postgresql, ledger, f"d{number}", 0, 1),
                        *overtaken(postgresql, ledger, f"o{number}", 2, 3),
                        *skewed(postgresql, ledger, f"s{number}", 4, 5),
                        *half_undone(postgresql, ledger, f"h{number}", 6, 7),
                    ]
                )
            until(lambda: not waiting(postgresql), "what is committed is published")
            before = published(postgresql)
        until(lambda: not waiting(postgresql), "what came late is published")
    assert drawn(postgresql, LAST) < before, "it did not come late"
    assert ledger.refusals[DEADLOCK] >= rounds
    assert ledger.refusals[SERIALIZATION] >= 2 * rounds
    assert len(ledger.kept) > 5 * rounds
    ledger.check(postgresql, received.bodies, every_word=style == "field")


@pytest.mark.in_turn
def test_numbers_that_sessions_keep_for_themselves_lose_nothing(postgresql: Engine, tmp_path: Path) -> None:
    prepare(postgresql, "field")
    users(postgresql)
    with postgresql.begin() as connection:
        [sequence] = connection.execute(text("SELECT pg_get_serial_sequence('event_log', 'record_id')")).one()
        connection.execute(text(f"ALTER SEQUENCE {sequence} CACHE {AT_A_TIME}"))
    ledger, out = Ledger(), tmp_path / "out"
    with in_thread(Publisher(config_of(postgresql, out, query_limit=4, polling_interval=1))):
        together([partial(write_alone, postgresql, ledger, own) for own in range(USERS)])
        until(lambda: not waiting(postgresql), "everything is published")
    with postgresql.connect() as connection:
        steps = "SELECT record_id < lag(record_id) OVER (ORDER BY event_time, record_id) AS back FROM event_log"
        back = int(connection.execute(text(f"SELECT count(*) FROM ({steps}) AS step WHERE back")).scalar_one())
    assert back > USERS, "the sessions took turns"
    ledger.check(postgresql, by_name(out), every_word=True)


def write_alone(engine: Engine, ledger: Ledger, own: int) -> None:
    """Transactions of one session on a user of its own."""
    mine = create_engine(engine.url)
    with mine.connect() as connection:
        for number in range(15):
            name(connection, own, f"w{own}.{number}")
            connection.commit()
            ledger.keep(f"w{own}.{number}")
            Event().wait(0.002)  # so that the others have their turn, too
    mine.dispose()


def test_the_check_notices_what_was_undone_and_what_is_missing(postgresql: Engine, tmp_path: Path) -> None:
    prepare(postgresql, "field")
    users(postgresql)
    ledger, out = Ledger(), tmp_path / "out"
    with Publisher(config_of(postgresql, out)) as publisher:
        publisher.run_once()
    ledger.check(postgresql, by_name(out), every_word=True)
    ledger.undo("first")
    with pytest.raises(AssertionError):
        ledger.check(postgresql, by_name(out), every_word=True)
    ledger.undone.clear()
    ledger.keep("never written")
    with pytest.raises(AssertionError):
        ledger.check(postgresql, by_name(out), every_word=True)
