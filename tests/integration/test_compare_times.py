"""When a publisher without triggers looks, what it says meanwhile, and what a later start tells."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from time import monotonic

import pytest
from sqlalchemy import Engine

from eventlog.cli.main import exit_code
from eventlog.config.settings import load
from eventlog.core.errors import SourceError
from eventlog.core.schema import Table
from eventlog.daemon.publisher import Publisher
from eventlog.sources.compare.reader import CompareReader
from tests.integration.publishing import in_thread, until, url_of
from tests.support.xds_events import read_events

CONFIG = """
[source]
kind = "compare"
url = "{source}"
tables = ["usr"]
[source.compare]
state = "{state}"
{compare}
[publisher]
polling_interval = 1
{publisher}
[[output]]
sink = "files"
path = "{folder}/out"
"""


class Site:
    """A table of people, and what was published of it."""

    def __init__(self, source: Engine, folder: Path, state: str) -> None:
        self.source = source
        self.folder = folder
        self.file = folder / "eventlog.toml"
        self.state = state
        self.run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40))")

    def run(self, sql: str) -> None:
        with self.source.begin() as connection:
            connection.exec_driver_sql(sql)

    def configured(self, *, compare: str = "", publisher: str = "") -> Path:
        marks = "" if "://" in self.state else f'\nmarks = "{self.folder}/marks.json"'
        self.file.write_text(
            CONFIG.format(
                source=url_of(self.source),
                state=self.state,
                folder=self.folder,
                compare=compare + marks,
                publisher=publisher,
            )
        )
        return self.file

    def publisher(self, **settings: str) -> Publisher:
        return Publisher(load(self.configured(**settings)))

    def once(self, **settings: str) -> list[str]:
        """The operations that a start publishes until nothing is left."""
        before = len(self.events)
        assert exit_code(["run", "--until-empty", "--config", str(self.configured(**settings))]) == 0
        return self.events[before:]

    @property
    def events(self) -> list[str]:
        """The operations that were published, in order."""
        documents = sorted((self.folder / "out").glob("*.xml"))
        return [event.op.value for one in documents for event in read_events(one.read_bytes())]


@pytest.fixture
def site(sqlite: Engine, tmp_path: Path) -> Site:
    return Site(sqlite, tmp_path, str(tmp_path / "state.db"))


@pytest.mark.parametrize("kept", ["file", "database"])
def test_a_later_start_tells_what_changed_everything_or_nothing_that_is_there(
    site: Site, kept: str, request: pytest.FixtureRequest
) -> None:
    if kept == "database":
        site.state = url_of(request.getfixturevalue("postgresql"))
    site.run("INSERT INTO usr VALUES (1, 'a'), (2, 'b')")
    assert len(site.once()) == 2
    site.run("UPDATE usr SET fname = 'c' WHERE idu = 1")
    assert site.once() == ["modify"]
    site.run("UPDATE usr SET fname = 'd' WHERE idu = 2")
    assert site.once(compare='restart = "future-only"') == []
    assert site.once() == []
    site.run("DELETE FROM usr WHERE idu = 2")
    for told in (["delete", "add"], ["add"]):
        assert site.once(compare='restart = "resync"') == told
    assert site.once() == []


def test_a_first_start_that_fails_goes_on_as_a_first_start(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what was there would be told by nobody."""
    site.run("INSERT INTO usr VALUES (1, 'a')")
    opened, failures = CompareReader._open_table, [SourceError("The server is away.", may_pass=True)]

    def fail(reader: CompareReader, table: Table) -> object:
        found = opened(reader, table)
        if failures:
            raise failures.pop()
        return found

    monkeypatch.setattr(CompareReader, "_open_table", fail)
    with in_thread(site.publisher(compare='restart = "future-only"')):
        until(lambda: len(site.events) == 1, "the row is published")
    assert failures == []


def test_a_server_that_was_away_is_no_start(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what changed meanwhile would be told by nobody."""
    site.run("INSERT INTO usr VALUES (1, 'a')")
    site.once()
    looks = CompareReader._suspects
    away, looked = Event(), Event()

    def look(reader: CompareReader) -> Iterator[object]:
        if away.is_set():
            raise SourceError("The server is away.", may_pass=True)
        yield from looks(reader)
        looked.set()

    monkeypatch.setattr(CompareReader, "_suspects", look)
    with in_thread(site.publisher(compare='restart = "future-only"')) as publisher:
        until(looked.is_set, "it has begun")
        away.set()
        until(lambda: publisher.vitals.reading().state == "failing", "it fails")
        site.run("INSERT INTO usr VALUES (2, 'b')")
        away.clear()
        until(lambda: len(site.events) == 2, "the row is published")
    assert site.events == ["add", "add"]


def test_outside_of_its_hours_it_reads_nothing_says_that_it_lives_and_can_be_stopped(site: Site) -> None:
    now = dt.datetime.now()  # the clock on the wall, as people set it
    closed, opened = [
        f"{now + dt.timedelta(hours=begin):%H:%M}-{now + dt.timedelta(hours=begin + 12):%H:%M}" for begin in (6, -6)
    ]
    site.run("INSERT INTO usr VALUES (1, 'a')")
    beats = "heartbeat_interval = 0.001"
    with in_thread(site.publisher(compare=f'between = "{closed}"', publisher=beats)) as publisher:
        until(lambda: publisher.vitals.reading().heartbeats > 1, "its heart beats")
        assert site.events == []
    with in_thread(site.publisher(compare=f'between = "{opened}"', publisher=beats)) as publisher:
        until(lambda: site.events == ["add"], "the row is published")
        until(lambda: publisher.vitals.reading().heartbeats > 1, "its heart beats when nothing comes")


def test_a_stop_is_obeyed_while_the_pace_is_kept(site: Site) -> None:
    rows = ", ".join(f"({number}, 'a')" for number in range(300))
    site.run(f"INSERT INTO usr VALUES {rows}")
    with in_thread(site.publisher(compare="rows_per_second = 5")):
        until(lambda: len(site.events) == 300, "what was read is published, and does not wait for the pace")
        began = monotonic()
    assert monotonic() - began < 10  # the next range may be read after a minute
