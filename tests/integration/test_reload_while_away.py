"""A publisher that waits for a database that is away reads its configuration anew when somebody asks it to."""

from __future__ import annotations

import io
from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy import Engine

from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import ConfigError
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.logging import journal
from eventlog.daemon.service import STOPPED, Ending, Service
from tests.integration.publishing import PATIENCE, config_of, finished, site, until


@pytest.mark.parametrize("broken", [False, True])
def test_who_waits_for_a_database_that_is_away_hears_that_it_is_another_one_now(
    sqlite: Engine, tmp_path: Path, broken: bool
) -> None:
    log = site(sqlite)
    log.write(1)
    away = Config(source=SourceConfig(url="postgresql+psycopg://idm@127.0.0.1:1/app"))
    found = [config_of(sqlite, tmp_path / "out")]
    told, vitals = io.StringIO(), PublisherHealth()

    def read() -> Config:
        if broken and "reload_failed" not in told.getvalue():
            raise ConfigError("publisher.batch_sise is not a key.", hint="Did you mean batch_size?")
        return found[0]

    service = Service(read, journal("json", stream=told), vitals)
    ends: list[Ending] = []
    thread = Thread(target=lambda: ends.append(service.run(away)))
    thread.start()
    until(lambda: told.getvalue().count('"failed"'), "it waits")
    service.reload()
    if broken:
        until(lambda: "reload_failed" in told.getvalue(), "it tells that this cannot be read")
        service.reload()
    until(finished(log, 1), "it works with what it read")
    service.stop()
    thread.join(PATIENCE)
    assert ends == [STOPPED]
