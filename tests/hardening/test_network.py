"""A publisher or its outputs whose connections or servers fail: it waits, goes on, and nothing is missing or twice."""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.hardening.crash import configure, finish, kill, prepare, publisher, waiting, writers
from tests.hardening.proxy import Proxy
from tests.hardening.quantity import scaled
from tests.hardening.receiving import inbox
from tests.hardening.replaying import tables
from tests.hardening.targets import ChangeTables, Files, Kafka, Receiver, Target
from tests.hardening.troubles import TROUBLES, endure, settled
from tests.hardening.writing import transaction
from tests.integration.publishing import until
from tests.support.servers_kafka import Broker


@pytest.mark.in_turn
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("behind", ["log", "receiver", "change tables"])
def test_connections_that_go_bad_lose_and_double_nothing(
    postgresql: Engine, tmp_path: Path, behind: str, trouble: str
) -> None:
    url = postgresql.url
    with ExitStack() as stack:
        found = stack.enter_context(inbox(1))
        port = found.port if behind == "receiver" else int(url.port or 0)
        proxy = stack.enter_context(Proxy("127.0.0.1", port))
        through = url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        aim: Target = Files(tmp_path, "field")
        if behind == "receiver":
            aim = Receiver(found, proxy.port)
        elif behind == "change tables":
            aim = ChangeTables(postgresql, tmp_path, through)
        prepare(postgresql, aim.style)
        one = publisher(configure(postgresql, tmp_path, aim, through if behind == "log" else ""))
        with writers(postgresql, 3):
            # Whoever loses the database while it begins ends with a sentence; here it is to be at work.
            until(lambda: settled(postgresql) > 5 and proxy.carried > 10_000, "the publisher works through the proxy")
            endure(proxy, trouble, scaled(1))
        assert one.is_alive()
        until(lambda: not waiting(postgresql), "everything is published")
        kill(one)
    assert aim.check(postgresql) == tables(postgresql)


@pytest.mark.in_turn
def test_a_broker_that_is_killed_has_every_change_once(postgresql: Engine, tmp_path: Path, broker: Broker) -> None:
    aim = Kafka(broker.servers, "hardening.killed", real=True)
    prepare(postgresql, aim.style)
    config = configure(postgresql, tmp_path, aim)
    one = publisher(config)
    with writers(postgresql, 6):
        before = 0
        for _ in range(scaled(1)):
            until(lambda: settled(postgresql) > before + 10, "changes are published")  # noqa: B023  # used at once
            broker.stop()
            broker.start()
            before = settled(postgresql)
        until(lambda: settled(postgresql) > before + 10, "it goes on")
    assert one.is_alive()
    kill(one)
    finish(postgresql, config)
    assert aim.check(postgresql) == tables(postgresql)


def test_the_checker_notices_what_is_missing_twice_or_out_of_order(sqlite: Engine, tmp_path: Path) -> None:
    aim = Files(tmp_path)
    prepare(sqlite, aim.style)
    dice = random.Random(1)
    for _ in range(30):
        transaction(sqlite, dice)
    finish(sqlite, configure(sqlite, tmp_path, aim))
    assert aim.check(sqlite) == tables(sqlite)
    first, *_, last = sorted(aim.folder.glob("*.xml"))
    for spoil in (first.unlink, lambda: first.write_bytes(last.read_bytes()), lambda: first.rename(f"{last}.xml")):
        body = first.read_bytes()
        spoil()
        with pytest.raises(AssertionError):
            aim.check(sqlite)
        Path(f"{last}.xml").unlink(missing_ok=True)
        first.write_bytes(body)
    assert aim.check(sqlite) == tables(sqlite)
