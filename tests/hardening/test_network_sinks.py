"""Outputs whose connections or servers fail the publisher: it waits, goes on, and nothing is missing or twice there."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.hardening.crash import configure, finish, prepare, publisher, writers
from tests.hardening.ledger import stream
from tests.hardening.ledger.runs import waiting
from tests.hardening.proxy import Proxy
from tests.hardening.quantity import scaled
from tests.hardening.replaying import Store, tables
from tests.hardening.targets import ChangeTables, Kafka, Receiver
from tests.hardening.troubles import TROUBLES, endure, finished, own_server
from tests.integration.publishing import until
from tests.support.servers_kafka import Broker


@pytest.mark.in_turn
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_receiver_behind_a_bad_network_gets_everything_in_order(
    postgresql: Engine, tmp_path: Path, trouble: str
) -> None:
    with stream.receiving(Receiver(1, "silent away")) as aim, Proxy("127.0.0.1", aim.port) as proxy:
        aim.port = proxy.port
        told = published_through(proxy, aim, trouble, postgresql, tmp_path)
    assert told == tables(postgresql)


@pytest.mark.in_turn
@pytest.mark.parametrize("trouble", TROUBLES)
def test_change_tables_behind_a_bad_network_get_everything_once(
    postgresql: Engine, tmp_path: Path, trouble: str
) -> None:
    url = postgresql.url
    with Proxy(url.host or "", url.port or 0) as proxy:
        aim = ChangeTables(postgresql, tmp_path)
        aim.url = url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        told = published_through(proxy, aim, trouble, postgresql, tmp_path)
    assert told == tables(postgresql)


def published_through(proxy: Proxy, aim: Receiver | ChangeTables, trouble: str, source: Engine, folder: Path) -> Store:
    """What came through a proxy that makes trouble, once nothing waits any more."""
    prepare(source, aim.style)
    one = publisher(configure(source, folder, aim))
    with writers(source, 3):
        until(lambda: proxy.carried > 10_000, "the publisher works through the proxy")
        endure(proxy, trouble, scaled(1))
    assert one.alive, one.said
    until(lambda: not waiting(source), "everything is published")
    one.kill()
    return aim.check(source)


@pytest.mark.in_turn
def test_a_server_of_change_tables_that_is_stopped_at_once_has_everything_once(
    postgresql: Engine, tmp_path: Path
) -> None:
    with own_server() as (engine, crash):
        aim = ChangeTables(engine, tmp_path)
        prepare(postgresql, aim.style)
        config = configure(postgresql, tmp_path, aim)
        one = publisher(config)
        with writers(postgresql, 5):
            for _ in range(scaled(2)):
                before = finished(postgresql)
                until(lambda: finished(postgresql) > before + 10, "changes arrive")  # noqa: B023  # used at once
                crash()
        assert one.alive, one.said
        one.kill()
        finish(postgresql, config)
        assert aim.check(postgresql) == tables(postgresql)


@pytest.mark.in_turn
def test_a_broker_that_is_killed_has_every_change_once(postgresql: Engine, tmp_path: Path, broker: Broker) -> None:
    aim = Kafka(broker.servers, real=True)
    prepare(postgresql, aim.style)
    config = configure(postgresql, tmp_path, aim)
    one = publisher(config)
    with writers(postgresql, 6):
        before = 0
        for _ in range(scaled(1)):
            until(lambda: finished(postgresql) > before + 10, "changes are published")  # noqa: B023  # used at once
            broker.stop()
            broker.start()
            before = finished(postgresql)
        until(lambda: finished(postgresql) > before + 10, "it goes on")
    assert one.alive, one.said
    one.kill()
    finish(postgresql, config)
    assert aim.check(postgresql) == tables(postgresql)
