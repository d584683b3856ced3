"""A run: a schema tracked with a style, random work on it, the publisher between, and its documents against the tables."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.build import catalog_of
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.convert.settings import Conversion, DatabaseRows, LogInput, MessageFiles, TableFiles, Target
from eventlog.core.errors import SourceError
from eventlog.core.rules import Options
from eventlog.refresh.chunks import Refresh
from eventlog.refresh.loads import RefreshPace, loads
from eventlog.refresh.ranges import RangeState
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.findlog import locate_log
from eventlog.sql.log import Log
from eventlog.tracked.options import Style, TriggerOptions
from eventlog.xds.write import XdsFormat
from tests.hardening.schemas.history import History
from tests.hardening.schemas.images import Images, appeared
from tests.hardening.schemas.replaying import Replayer, Store, expected
from tests.hardening.schemas.shapes import schema
from tests.hardening.schemas.working import Session, looked_at
from tests.integration.publishing import Process, publish_all, until
from tests.support.changerows import CSV

SESSIONS = {"postgresql": 3, "mysql": 2, "mariadb": 2}
"""Who works at the same time; on SQLite one, for others would wait for its lock, in the one thread that there is."""

LOADS = {"postgresql": 0.1, "mysql": 0.3, "mariadb": 0.3}
"""How often a stretch of a full load comes between two steps, where it waits for nobody that has written meanwhile."""

VALUED = (Style.FIELD, Style.FIELD_REPLACE, Style.IMAGE)


class Run:
    """One schema in one database, tracked whole. `remarks` is what `track` said of it.

    With `images` publishers also write messages and change tables.
    """

    def __init__(self, engine: Engine, folder: Path, style: Style, seed: int, *, images: bool = False) -> None:
        self.engine, self.folder = engine, folder
        _run(engine, *schema(engine.dialect.name, _version(engine)))
        install(engine)
        self.tables = looked_at(engine)
        names = [one.name for one in self.tables if one.shape.key]
        self.remarks: list[str] = []
        # Where two rows may have one key for a while, no trigger can tell images apart, and `track` refuses them.
        late_keys = [one.name for one in self.tables if style is Style.IMAGE and one.deferrable and one.name in names]
        track(engine, sorted({*names} - {*late_keys}), TriggerOptions(style=style), note=self.remarks.append)
        if late_keys:
            track(engine, late_keys, note=self.remarks.append)
        several = {f"{one.name}.{column}" for one in self.tables if not one.shape.key for column in one.kinds}
        late = frozenset(one.name for one in self.tables if one.deferrable)
        if engine.dialect.name == "sqlite":
            # A foreign key changes what refers to a row before the trigger of the row's own change fires.
            late |= {"employee"}
        self.replayer = Replayer(strict=style in VALUED, several=frozenset(several), loose=late)
        self.dice = random.Random(seed)
        shapes = [one.shape for one in self.tables]
        self.images = [Images(folder / name, shapes) for name in ("messages", "changes") if images]
        count = SESSIONS.get(engine.dialect.name, 1)
        self.sessions = [Session(engine, self.tables, seed * 100 + one) for one in range(count)]
        self.outputs = (
            FilesOutput(path=str(folder)),
            *(FilesOutput(path=str(one.folder), format="messages") for one in self.images[:1]),
            *(FilesOutput(path=str(one.folder), format="change-tables", file_format="csv") for one in self.images[1:]),
        )
        self.config = Config(
            source=SourceConfig(url=engine.url.render_as_string(hide_password=False)),
            publisher=PublisherConfig(allow_loopback=True, time_syntax=3, enable_refs=False, batch_size=16),
            output=self.outputs,
        )
        self._load: Iterator[RangeState] = iter(())
        self._taken: set[str] = set()
        for session in self.sessions:
            session.fill()
        self.history = self.replayer.past = History(engine, shapes)
        self.history.note()
        for session in self.sessions:
            session.committed = self.history.note

    def close(self) -> None:
        """Ends what a fault has left open, so that the database can be dropped."""
        for session in self.sessions:
            session.end(commit=False)

    def round(self, steps: int) -> list[str]:
        """Some work, at times with documents while transactions are open; then all of it is told. Tells what is not so."""
        for session in self.sessions:
            session.done.clear()
        for _ in range(steps):
            self.dice.choice(self.sessions).step()
            if self.dice.random() < LOADS.get(self.engine.dialect.name, 0) and not self._is_kept_out():
                self._refresh()
                self.history.note(changed=False)
        if self.dice.random() < 0.3 and not self._is_kept_out():
            self.publish()
        for session in self.sessions:
            session.end(commit=True)
        self.publish()
        return self.faults()

    def _is_kept_out(self) -> bool:
        """Whether a writer has locked others out: on SQLite always, elsewhere where tables were truncated."""
        return self.engine.dialect.name == "sqlite" or any(one.keeps_out for one in self.sessions)

    def work(self, steps: int) -> None:
        """Some work, of which this program publishes nothing."""
        for _ in range(steps):
            self.dice.choice(self.sessions).step()
        for session in self.sessions:
            session.end(commit=True)

    def killed(self, steps: int) -> list[str]:
        """Some work beside a publisher that is killed, and more of it before the next one. Tells what is not so."""
        file = self.folder / "eventlog.toml"
        file.write_text(
            "[publisher]\ntime_syntax = 3\nenable_refs = false\nbatch_size = 3\n"
            + "".join(
                f'[[output]]\nsink = "files"\npath = "{one.path}"\nformat = "{one.format}"\n'
                + ('file_format = "csv"\n' if one.format == "change-tables" else "")
                for one in self.outputs
            )
        )
        for one in self.images:
            one.repeating = True
        there, more = self._written(), self.dice.randint(1, 6)
        with Process(self.engine, self.folder, "--config", str(file), out=False) as daemon:
            self.work(steps)
            until(lambda: self._written() >= there + more or not self._waiting(), "documents")
            daemon.tell(signal.SIGKILL)
        self.work(steps)
        self.publish()
        return self.faults()

    def _written(self) -> int:
        """How many files there are of every output."""
        return sum(path.suffix in (".xml", ".jsonl", ".csv") for path in self.folder.rglob("*"))

    def _waiting(self) -> bool:
        return bool(self._ask("SELECT 1 FROM event_log WHERE status = 'N' LIMIT 1"))

    def convert(self, engine: Callable[[Conversion], object]) -> list[str]:
        """Converts the log as a whole, in the place of a publisher, to every format. Tells what is not so."""
        url, out = self.config.source.url, self.folder / "converted"
        with self.engine.connect() as connection:
            catalog = catalog_of(self.engine, locate_log(connection, None), self.config)
        self.images = [Images(out / name, [one.shape for one in self.tables]) for name in ("messages", "changes")]
        formats: Mapping[str, Target] = {
            "documents": XdsFormat(time_syntax=3, enable_refs=False),
            "messages": MessageFiles(),
            "changes": TableFiles(files=CSV),
        }
        for folder, form in formats.items():
            conversion = Conversion(
                input=LogInput(url=url),
                destination=out / folder,
                catalog=catalog,
                read_back=DatabaseRows(url=url),
                format=form,
                options=Options(allow_loopback=True),
            )
            engine(conversion)
        self.replayer.take(one.read_bytes() for one in sorted(out.rglob("*.xml")))
        for images in self.images:
            images.take()
        return self.different()

    def _refresh(self) -> None:
        """A stretch of a full load, of whichever table has its turn, while others write; what is locked comes later."""
        try:
            if next(self._load, None) is None:
                table = self.dice.choice([one for one in self.tables if one.shape.key]).name
                with self.engine.connect() as connection:
                    log = Log(self.engine, locate_log(connection, None))
                [load] = loads(self.engine, log.names, [table], None, None)
                work = Refresh(log, load, RefreshPace(chunk=2))
                self._load = work.steps(work.begin())
        except (DBAPIError, SourceError):  # what is locked is not waited for without an end
            self._load = iter(())

    def publish(self) -> None:
        """Publishes what is there to be published, and gives the documents to the replayer."""
        publish_all(self.config)
        new = sorted([one for one in self.folder.glob("*.xml") if one.name not in self._taken], key=appeared)
        self._taken.update(one.name for one in new)
        self.replayer.take(one.read_bytes() for one in new)
        for images in self.images:
            images.take()

    def faults(self) -> list[str]:
        """Where the receiver has not what the tables have, what it was told that could not be, and what was refused."""
        refused = self._ask(
            "SELECT record_id, status, table_name, table_key FROM event_log WHERE status NOT IN ('S', 'W')"
        )
        faults = [*(f"refused: {row}" for row in refused), *self.different()]
        return [*faults[:8], self.story()] if faults else []

    def different(self) -> list[str]:
        """What the receiver was told that could not be, and where it has not what the tables have."""
        found, held = expected(self.engine, [one.shape for one in self.tables]), self.replayer.filled()
        self.replayer.settle()
        of_images = [fault for one in self.images for fault in one.differences(found)]
        return [*self.replayer.wrong, *different(found, held), *of_images]

    def story(self) -> str:
        """What the sessions did in this round, one after the other, and what the log has of it."""
        parts = [f"-- session {number}\n" + "\n".join(one.done) for number, one in enumerate(self.sessions)]
        return "\n".join([*parts, "-- log", *map(str, self._log())])

    def _log(self) -> list[tuple[object, ...]]:
        columns = "record_id, status, event_type, table_name, table_key, column_name, old_value, new_value"
        return self._ask(f"SELECT {columns} FROM event_log ORDER BY record_id")[-150:]

    def _ask(self, query: str) -> list[tuple[object, ...]]:
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query))]


def _version(engine: Engine) -> tuple[int | str, ...]:
    with engine.connect() as connection:
        return connection.dialect.server_version_info or ()


def different(found: Store, held: Store) -> list[str]:
    """How tables and receiver differ, object by object."""
    lines = []
    for place in sorted(found.keys() | held.keys()):
        tables, receiver = found.get(place), held.get(place)
        if tables != receiver:
            lines.append(f"{place}: tables {tables}, receiver {receiver}")
    return lines


def _run(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
