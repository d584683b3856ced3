"""What `eventlog check` finds on MariaDB and MySQL: a trigger that is gone, rights that are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine, create_engine

from eventlog.admin.check import Point, PointLevel, check
from eventlog.capture import track
from eventlog.capture.install import install
from eventlog.capture.rights import Roles, give_rights
from eventlog.config.settings import Config, SourceConfig
from tests.integration.publishing import url_of
from tests.support.logged import USR, run
from tests.support.servers import mysqls


@pytest.fixture(params=mysqls())
def usr(request: pytest.FixtureRequest) -> Engine:
    engine: Engine = request.getfixturevalue(request.param)
    install(engine)
    run(engine, *USR)
    track(engine, ["usr"])
    return engine


@contextmanager
def account(admin: Engine) -> Iterator[Engine]:
    """Somebody without any right."""
    name = f"c{admin.url.database}"[-30:]
    run(admin, f"CREATE USER `{name}`@`%`")
    engine = create_engine(admin.url.set(username=name))
    try:
        yield engine
    finally:
        engine.dispose()
        run(admin, f"DROP USER `{name}`@`%`")


def found(engine: Engine, name: str) -> list[Point]:
    """The points of this name that are not well."""
    config = Config(source=SourceConfig(url=url_of(engine)))
    return [point for point in check(lambda: config) if point.name == name and point.level is not PointLevel.OK]


def test_rights_that_a_publisher_lacks_are_told_until_they_are_given(usr: Engine) -> None:
    with account(usr) as publisher:
        name = f"{publisher.url.username}@%"
        run(usr, f"GRANT SELECT ON event_log TO `{publisher.url.username}`@`%`")
        lacking = found(publisher, "rights")
        assert {point.said.partition(" cannot")[0] for point in lacking} >= {
            "The event log",
            "The state table event_log_outcome",
        }
        give_rights(usr, Roles(publisher=name))
        assert found(publisher, "rights") == []
