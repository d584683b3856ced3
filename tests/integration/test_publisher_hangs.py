"""What others see of a publisher that gets nowhere: no sign of life while it hangs, and a reload that ends the waiting."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from threading import Event as Flag
from threading import Thread

import pytest
from sqlalchemy import Engine

from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import ConfigError
from eventlog.core.model import Document, Outcome
from eventlog.daemon.logging import journal
from eventlog.daemon.publisher import Publisher
from eventlog.daemon.service import STOPPED, Ending, Service
from eventlog.daemon.vitals import PublisherHealth
from eventlog.delivery.output import Output
from eventlog.sinks.files import FileSink
from eventlog.xds.write import XdsFormat
from tests.integration.publishing import PATIENCE, config_of, in_thread, settled, site, until


class Hanging(FileSink):
    """A sink that hangs until it is let go."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ".xml")
        self.reached, self.free = Flag(), Flag()

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        self.reached.set()
        assert self.free.wait(PATIENCE)
        return super().commit(plan, documents)


def test_who_hangs_gives_no_sign_of_life_so_that_a_watchdog_can_notice(sqlite: Engine, tmp_path: Path) -> None:
    log = site(sqlite)
    signs: list[bool] = []
    sink = Hanging(tmp_path)
    vitals = PublisherHealth(on_move=lambda: signs.append(sink.reached.is_set() and not sink.free.is_set()))
    outputs = [Output(format=XdsFormat(), sink=sink)]
    with in_thread(Publisher(config_of(sqlite, tmp_path, lease=0.5), outputs=outputs, vitals=vitals)):
        until(lambda: signs, "it shows life while it has nothing to do")
        log.write(1)
        assert sink.reached.wait(PATIENCE)
        until(lambda: vitals.reading().silent > 1, "the lease is renewed meanwhile, and that is no sign")
        sink.free.set()
        until(settled(log, 1), "it goes on")
    assert not any(signs)


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
    until(settled(log, 1), "it works with what it read")
    service.stop()
    thread.join(PATIENCE)
    assert ends == [STOPPED]
