"""Logs that fail over to a standby which lags behind, and targets that lose their last plans (decision 62)."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.care.outputs import resume
from eventlog.config.settings import PublisherConfig
from eventlog.core.model import Change, Document
from eventlog.core.rules import Options, Round
from eventlog.core.seams import Format
from eventlog.delivery.output import Output
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.decide import Decider
from eventlog.publisher.plans import RECENT_CHARACTERS, add_recent, name_plan, read_plan, split_recent
from eventlog.publisher.restored import LACKS
from eventlog.publisher.turn_report import ConsumerSettings
from eventlog.qlik.change_tables.rows import RowBlock, RowsDocument
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from eventlog.sinks.files import FileSink
from eventlog.sources.marks import RowRanges
from eventlog.sql.connect import connect
from eventlog.xds.write import XdsFormat
from tests.publisher.forgetting import read_tables, write_tables
from tests.publisher.real import COLUMNS, TABLE
from tests.publisher.scene import Scene
from tests.publisher.test_damage import found
from tests.support import servers
from tests.support.logged import with_bare_names

FAILOVERS = 2
"""The second one meets outputs that were restored before; a third is the same again."""
LAG = 50
"""So many changes a standby lags behind."""


class Told(NamedTuple):
    """A change as a text."""

    positions: tuple[tuple[int, ...], ...]
    told: str


class Texts:
    """Changes as rows of a change table, each with what was changed."""

    suffix, counts = ".rows", False

    def writer(self, _catalog: object) -> Any:
        def write(changes: Iterable[Change]) -> Iterator[Told]:
            for change in changes:
                yield Told(change.positions, " ".join(str(edit.new) for edit in change.edits))

        return write

    def bind(self, written: Iterable[Told], after: str = "", whole: bool = False) -> Iterator[Document]:
        for number, one in enumerate(written, int(after or 0) + 1):
            cells = ([f"{number:035d}"], [one.told])
            block = RowBlock(table=TABLE, target="t__ct", columns=COLUMNS, cells=cells, positions=[one.positions])
            covers = {str(one.positions[0][0]): one.positions}
            yield RowsDocument(id=f"{number:035d}", body=b"", covers=covers, blocks=(block,))

    def heartbeat(self) -> None:
        return None


class Primary:
    """A PostgreSQL with a standby that gets nothing any more, and takes over."""

    def __init__(self, binaries: Path) -> None:
        self._binaries, self._folder = binaries, Path(tempfile.mkdtemp(prefix="eventlog-primary-"))
        self._owner = servers.server_owner(self._folder)
        servers._initialise(binaries, self._folder, self._owner)
        self._port, self._standby = servers.free_port(), self._folder
        self.url = f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/postgres"
        self._server = self._started(self._folder)

    def _started(self, folder: Path) -> subprocess.Popen[bytes]:
        settings = {"wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"}
        return servers._started(self._binaries, folder, self._port, self._owner, **settings)

    def stop_streaming(self) -> None:
        """From now on the standby lags behind."""
        self._standby = Path(tempfile.mkdtemp(prefix="eventlog-standby-"))
        servers.server_owner(self._standby)
        backup = ["-D", str(self._standby / "data"), "-X", "stream", "-c", "fast", "--no-sync"]
        where = ["-h", "127.0.0.1", "-p", str(self._port), "-U", "postgres"]
        command = [str(self._binaries / "pg_basebackup"), *where, *backup]
        subprocess.run(command, check=True, capture_output=True, cwd=self._standby, user=self._owner)
        subprocess.run(["touch", str(self._standby / "data" / "standby.signal")], check=True, user=self._owner)

    def fail_over(self) -> None:
        """Lose the primary and promote its standby."""
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder, self._server = self._standby, self._started(self._standby)
        engine = connect(self.url)
        with engine.connect() as connection:
            connection.execute(text("SELECT pg_promote()"))
        engine.dispose()

    def _stop(self) -> None:
        self._server.send_signal(signal.SIGQUIT)
        self._server.wait(timeout=servers.PATIENCE)

    def close(self) -> None:
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)


@pytest.fixture
def primary() -> Iterator[Primary]:
    binaries = servers.postgres_binaries()
    if binaries is None or not (binaries / "pg_basebackup").exists():
        servers.absent("postgres", "pg_basebackup is missing")
    server = Primary(binaries)
    try:
        yield server
    finally:
        server.close()


class Site:
    """A log, of which each row has a text of its own; change tables in another database, and a folder."""

    def __init__(self, log: Engine, target: Engine, folder: Path) -> None:
        self.scene, self.target, self.folder = Scene(log), target, folder
        self.written = 0
        url = target.url.render_as_string(hide_password=False)
        self._add("tables", Texts(), DatabaseSink(DatabaseSettings(url=url)))
        self._add("files", XdsFormat(), FileSink(folder, ".xml"))
        self.seen: set[str] = set()

    def _add(self, name: str, form: Format, sink: Any) -> None:
        scene, decider = self.scene, Decider(Round(options=Options()))
        scene.journal.serve([(name, ())])
        output = Output(format=form, sink=sink, name=name)
        scene.consumers[name] = Consumer(scene.journal, output, decider, ConsumerSettings(limit=5))

    def write(self, count: int) -> None:
        """Write rows with the next numbers of the log, as its sequence gives them."""
        [(last,)] = self.scene.ask("SELECT COALESCE(MAX(record_id), 0) FROM event_log")
        for number in range(int(last) + 1, int(last) + count + 1):
            self.written += 1
            key = f"idu={self.written % 7}"
            self.scene.table.write(number, key=key, new_value=f"text {self.written}", event_time="2026-03-23 10:57:19")

    def publish(self) -> None:
        self.scene.publish()
        self.seen |= {path.read_text() for path in self.folder.glob("*.xml")}

    def in_tables(self) -> Counter[str]:
        with self.target.connect() as connection:
            told = connection.execute(text("SELECT told FROM t__ct")).scalars().all()
        return Counter(map(str, told))

    def texts(self, where: str) -> set[str]:
        return {str(value) for (value,) in self.scene.ask(f"SELECT new_value FROM event_log WHERE {where}")}


def test_a_log_that_fails_over_loses_and_doubles_nothing_silently(
    primary: Primary, postgresql: Engine, tmp_path: Path
) -> None:
    engine = with_bare_names(connect(primary.url))
    site, told = Site(engine, postgresql, tmp_path / "out"), set[str]()
    for _ in range(FAILOVERS):
        site.write(20)
        site.publish()
        site.write(3)  # which the standby has, and does not know to be published
        primary.stop_streaming()
        for _ in range(LAG // 10):
            site.publish()
            site.write(10)
        site.publish()
        primary.fail_over()
        with suppress(DBAPIError):  # of the publisher, which lives on, all connections are others now
            site.scene.ask("SELECT 1")
        site.write(10)  # numbers that come again
        before = site.in_tables()
        site.publish()
        assert site.in_tables() == before
        outputs = site.scene.ask("SELECT name, restored FROM event_log_output ORDER BY name")
        for name, restored in outputs:
            assert restored is not None
            waiting = site.scene.ask(f"SELECT 1 FROM event_log_parked WHERE output = '{name}'")
            assert len(waiting) == 13
            assert resume(site.scene.log, PublisherConfig(), str(name), ["tables", "files"])
        told |= site.texts("status = 'N'")
        site.publish()
        assert (site.scene.waiting(), site.scene.left()) == ([], {})
    tables = site.in_tables()
    assert {one for one, times in tables.items() if times > 1} <= told
    assert site.texts("status = 'S'") <= tables.keys()
    for one in site.texts("status = 'S'"):
        assert any(f">{one}<" in document for document in site.seen)
    engine.dispose()


def test_rows_of_plans_that_a_target_has_lost_come_again(sqlite: Engine) -> None:
    scene = Scene(sqlite, "one", "other", askable=True)
    for first in range(1, 31, 3):
        scene.write(first, first + 2)
        scene.publish()
    receiver = scene.receivers["one"]
    [(recent,)] = scene.ask("SELECT recent FROM event_log_output WHERE name = 'one'")
    number, token = recent.split(" ")[7].partition("=")[0].split("-")
    receiver.plan, receiver.came = f"{int(number):012d}-{token}-21", [*range(1, 22)]
    scene.consumers["one"]._target.forget()  # its connection was lost
    scene.publish()
    assert receiver.came == [*range(1, 31)]
    assert scene.receivers["other"].came == [*range(1, 31)]
    assert (scene.waiting(), scene.left()) == ([], {})


def test_who_has_restored_both_is_told_that_the_target_may_lack_rows(sqlite: Engine) -> None:
    scene = Scene(sqlite, "one", askable=True)
    scene.write(1, 20)
    scene.publish()
    world: Any = SimpleNamespace(engine=sqlite, inside=False)
    kept, receiver = read_tables(sqlite), scene.receivers["one"]
    [(recent,)] = scene.ask("SELECT recent FROM event_log_output")
    number, token = recent.split(" ")[1].partition("=")[0].split("-")
    receiver.plan, receiver.came = f"{int(number):012d}-{token}-5", [*range(1, 6)]
    scene.journal.doubt()
    assert scene.lock.tenure is not None
    while len(receiver.came) == 5:
        scene.consumers["one"].turn(scene.lock.tenure)
    write_tables(world, kept)  # which does not know that rows are sent again
    scene.journal.doubt()
    scene.publish()
    [(warning,)] = scene.ask("SELECT warning FROM event_log_output")
    assert sorted(receiver.came) == [*range(1, 11)]
    assert LACKS in warning


def test_a_receiver_that_nobody_can_ask_is_told_by_who_lived_through_it(sqlite: Engine) -> None:
    scene = Scene(sqlite, "one")
    scene.write(1, 3)
    scene.publish()
    kept = {name: scene.ask(f"SELECT * FROM {name}") for name in ("event_log_output", "event_log_mark")}
    scene.write(4, 6)
    scene.publish()
    with sqlite.begin() as connection:
        connection.execute(text("DELETE FROM event_log WHERE record_id = 6"))
        connection.execute(text("UPDATE event_log SET status = 'N' WHERE record_id > 3"))
        for name, rows in kept.items():
            connection.execute(text(f"DELETE FROM {name}"))
            for row in rows:
                holes = ", ".join(f":v{place}" for place in range(len(row)))
                values = {f"v{place}": value for place, value in enumerate(row)}
                connection.execute(text(f"INSERT INTO {name} VALUES ({holes})"), values)
    scene.write(6, 8)
    scene.publish()
    assert scene.receivers["one"].came == [1, 2, 3, 4, 5, 6]
    assert scene.ask("SELECT record_id FROM event_log_parked WHERE reason = 'restored' ORDER BY 1") == [
        (4,),
        (5,),
        (6,),
    ]
    [damage] = found(scene)
    assert "`eventlog outputs resume 'one'` publishes the others" in damage.mend
    assert resume(scene.log, PublisherConfig(), "one", ["one"])
    scene.publish()
    assert scene.receivers["one"].came == [1, 2, 3, 4, 5, 6, *[4, 5, 6, 7, 8]]
    assert (scene.waiting(), scene.left()) == ([], {})


def test_a_name_says_which_plan_it_is() -> None:
    name = name_plan(7, -12)
    named = read_plan(name)
    assert named is not None
    assert (named.number, named.highest) == (7, -12)
    assert read_plan("convert:1") is None


def test_the_last_plans_are_kept_with_their_rows() -> None:
    recent, names = "", [""]
    for number in range(1, 101):
        names.append(name_plan(number, number))
        recent = add_recent(recent, names[-2], names[-1], RowRanges.run(number, number))
    assert len(recent) <= RECENT_CHARACTERS
    assert split_recent(recent, names[100]) == (recent, RowRanges())
    kept = split_recent(recent, names[90])
    assert kept is not None
    assert kept[1] == RowRanges.run(91, 100)
    assert split_recent(recent, names[3]) is None
    assert split_recent(recent, "") is None
    assert split_recent(add_recent("", "", names[1], RowRanges.run(1, 1)), "") == ("=", RowRanges.run(1, 1))


def test_a_look_that_finds_that_the_log_has_forgotten_something_ends_a_wait(sqlite: Engine) -> None:
    scene = Scene(sqlite, "one", askable=True)
    scene.write(1, 3)
    scene.publish()
    scene.table.run("UPDATE event_log_mark SET value = 'of before' WHERE name = 'written'")
    scene.journal._stamped = float("-inf")  # it is time to look
    with scene.log.transaction() as connection:
        assert scene.journal.anything(connection)
    scene.publish()
    assert (scene.waiting(), scene.left()) == ([], {})
