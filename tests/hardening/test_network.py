"""A publisher whose connections or server fail it: it waits, goes on, and nothing is missing or twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.hardening.crash import configure, finish, prepare, publisher, writers
from tests.hardening.ledger.runs import waiting
from tests.hardening.proxy import Proxy
from tests.hardening.quantity import scaled
from tests.hardening.replaying import tables
from tests.hardening.targets import Files
from tests.hardening.troubles import TROUBLES, endure, finished, own_server
from tests.hardening.writing import transaction
from tests.integration.publishing import until


@pytest.mark.in_turn
@pytest.mark.parametrize("trouble", TROUBLES)
def test_connections_that_go_bad_lose_and_double_nothing(postgresql: Engine, tmp_path: Path, trouble: str) -> None:
    aim = Files(tmp_path, "field")
    prepare(postgresql, aim.style)
    url = postgresql.url
    with Proxy(url.host or "", url.port or 0) as proxy:
        config = configure(
            postgresql, tmp_path, aim, url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        )
        one = publisher(config)
        with writers(postgresql, 3):
            # Whoever loses the database while it begins ends with a sentence; here it is to be at work.
            until(lambda: finished(postgresql) > 5, "the publisher works through the proxy")
            endure(proxy, trouble, scaled(2))
        assert one.alive, one.said
        until(lambda: not waiting(postgresql), "everything is published")
        one.kill()
    assert aim.check(postgresql) == tables(postgresql)


@pytest.mark.in_turn
def test_a_server_that_is_stopped_at_once_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with own_server() as (engine, crash):
        aim = Files(tmp_path, "row-back")
        prepare(engine, aim.style)
        config = configure(engine, tmp_path, aim)
        one = publisher(config)
        with writers(engine, 5):
            for number in range(1, scaled(1) + 1):
                until(lambda: finished(engine) > 20 * number - 15, "rows are published")  # noqa: B023  # used at once
                crash()
                until(lambda: finished(engine) > 20 * number, "it goes on")  # noqa: B023  # used at once
        assert one.alive, one.said
        one.kill()
        finish(engine, config)
        assert aim.check(engine) == tables(engine)


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
