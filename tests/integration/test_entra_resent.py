"""Rows that are sent to bulkUpload again before Entra's log has said anything: the word on their last request counts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from eventlog.care.rows import PROCESSED, Choice, requeue
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.integration.publishing import publish_all
from tests.integration.test_entra import awaited, config_of, person, statuses
from tests.support.entra import entra
from tests.support.scim import run, scim_site


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = create_engine(f"sqlite:///{tmp_path}/source.db")
    yield made
    made.dispose()


def send_again(engine: Engine, first: int, last: int) -> None:
    requeue(Log(engine, LogNames()), [(first, last)], Choice(statuses=PROCESSED))


def test_rows_that_are_sent_again_have_the_word_on_their_last_request(engine: Engine) -> None:
    with entra() as service:
        scim_site(engine)
        run(engine, person(1, "nodomain"))
        config = config_of(engine, service)
        publish_all(config)
        # Who mends the name without a trigger's row, and sends the row again before Entra has judged it.
        run(
            engine,
            "UPDATE usr SET login = 'ada@example.com' WHERE idu = 1",
            "DELETE FROM event_log WHERE record_id > 1",
        )
        send_again(engine, 1, 1)
        publish_all(config)
        assert len(service.uploads) == 2
        service.process(1)
        publish_all(config)
        assert [*statuses(engine).values()] == ["S"], "the first request was refused, and the second one is under way"
        service.process()
        assert [one["provisioningStatusInfo"]["status"] for one in service.log] == ["failure", "success"]
        publish_all(config)
        assert [*statuses(engine).values()] == ["S"]
        assert awaited(engine) == 0


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one after the other"])
def test_a_part_of_a_change_that_is_sent_again_has_the_word_on_its_last_request(engine: Engine, at_once: bool) -> None:
    with entra() as service:
        scim_site(engine, "field")
        run(engine, person(1))
        config = config_of(engine, service)
        publish_all(config)
        service.process()
        publish_all(config)
        service.log.clear()
        time.sleep(1.1)  # Entra's header `Date` has no parts of a second
        first = max(statuses(engine)) + 1
        run(engine, "UPDATE usr SET login = 'nodomain', fname = 'Ada' WHERE idu = 1")
        publish_all(config)
        send_again(engine, first + 1, first + 1)
        publish_all(config)
        assert len(service.uploads) == 3
        for _ in range(1 if at_once else 2):
            service.process(2 if at_once else 1)
            publish_all(config)
        assert [one["provisioningStatusInfo"]["status"] for one in service.log] == ["failure", "success"]
        letters = statuses(engine)
        assert (letters[first], letters[first + 1]) == ("E", "S")
        assert awaited(engine) == 0
