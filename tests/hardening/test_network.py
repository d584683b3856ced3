"""A publisher whose connections or server fail it: it waits, goes on, and nothing is missing or twice."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.hardening.crash import configure, finish, prepare, publisher, waiting, writers
from tests.hardening.proxy import Proxy
from tests.hardening.quantity import scaled
from tests.hardening.replaying import tables
from tests.hardening.targets import Files
from tests.hardening.troubles import TROUBLES, endure, own_server, settled
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
        one = publisher(config, "files")
        with writers(postgresql, 3):
            # Whoever loses the database while it begins ends with a sentence; here it is to be at work.
            until(lambda: settled(postgresql) > 5, "the publisher works through the proxy")
            endure(proxy, trouble, scaled(2))
        assert one.is_alive()
        until(lambda: not waiting(postgresql), "everything is published")
        one.kill()
        one.join()
    assert aim.check(postgresql) == tables(postgresql)


def test_a_server_that_is_stopped_at_once_loses_and_doubles_nothing() -> None:
    folder = Path(tempfile.mkdtemp(prefix="eventlog-hard-"))
    try:
        with own_server(folder) as (engine, crash):
            aim = Files(folder, "row-back")
            prepare(engine, aim.style)
            config = configure(engine, folder, aim)
            one = publisher(config, "files")
            with writers(engine, 5):
                for number in range(1, scaled(1) + 1):
                    until(lambda: settled(engine) > 20 * number - 15, "rows are published")  # noqa: B023  # used at once
                    crash()
                    until(lambda: settled(engine) > 20 * number, "it goes on")  # noqa: B023  # used at once
            assert one.is_alive()
            one.kill()
            one.join()
            finish(engine, config, "files")
            assert aim.check(engine) == tables(engine)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
