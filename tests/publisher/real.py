"""Real sinks in histories: folders and a database, with a point at each step at the file system and at each commit.

What a reader finds there is what came: each change says as a text which rows it has, as in the models.
"""

from __future__ import annotations

import csv
import errno
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch
from urllib.parse import unquote

from sqlalchemy import event, text

from eventlog.core.errors import OccupiedError, SinkError
from eventlog.core.model import Document, Outcome, Status
from eventlog.core.schema import Column, Table
from eventlog.core.seams import Resolved, Tenure
from eventlog.qlik.change_tables.rows import ChangeColumn, RowBlock, RowsDocument
from eventlog.sinks.change_files.settings import RowFileSettings
from eventlog.sinks.change_files.sink import ChangeTableFiles
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from eventlog.sinks.files import FileSink
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.http.post import HttpAnswer
from eventlog.sinks.http.sink import HttpSink
from eventlog.sinks.plan_folder import OWNERS
from eventlog.sql.connect import connect
from tests.publisher.actors import PassingError
from tests.publisher.targets import ModelFormat, ModelReceiver, ModelSink, Target, WrittenRow

if TYPE_CHECKING:
    from tests.publisher.world import World

CSV: Final = RowFileSettings().choose_files("csv")
TABLE: Final = Table(name="t", columns=(Column(name="told", type="text"),))
COLUMNS: Final = (
    ChangeColumn(name="header__change_seq", type="varchar(35)", header=True),
    ChangeColumn(name="told", type="text"),
)
LEVELS: Final = {Status.NEW: "retry", Status.ERROR: "error", Status.WARNING: "warning"}
STEPS: Final = ("open", "mkdir", "replace", "unlink")
"""What changes a folder."""
_hidden = re.compile(r"\.eventlog-[^=]+=[^=]+=([^=]*)=\d+=.+\.part").fullmatch


class RowsFormat(ModelFormat):
    """The documents of the models as rows of change tables, whose numbers grow."""

    def bind(self, written: Iterable[WrittenRow], after: str = "", whole: bool = False) -> Iterator[Document]:
        for number, one in enumerate(super().bind(written, after, whole), int(after or 0) + 1):
            identity = f"{number:035d}"
            positions = tuple(position for several in one.covers.values() for position in several)
            cells = ([identity], [one.body.decode()])
            block = RowBlock(table=TABLE, target="t__ct", columns=COLUMNS, cells=cells, positions=[positions])
            yield RowsDocument(id=identity, body=b"", covers=one.covers, cut=one.cut, blocks=(block,))


class RealSink(ModelSink):
    """A real sink of one publisher."""

    sink: Any

    def __init__(self, target: Target, world: World) -> None:
        super().__init__(target, world)
        self.place, self.leaving = world.folder / target.name, world.leaving
        self.sink = self.made()
        self.capabilities = self.sink.capabilities

    def made(self) -> Any:
        raise NotImplementedError

    def open(self, tenure: Tenure) -> None:
        self.sink.open(tenure)

    def last(self) -> str:
        last: str = self.sink.last()
        return last

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        self.sink.prepare(plan, documents)

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        said: Sequence[Outcome] = self.sink.commit(plan, documents)
        return said

    def resolve(self, plan: str) -> Resolved:
        found: Resolved = self.sink.resolve(plan)
        return found


class RealFiles(RealSink):
    """A file for each document; one that comes again takes its own place."""

    def made(self) -> Any:
        return FileSink(self.place, ".json")

    @staticmethod
    def told(path: Path) -> list[str]:
        """Read the documents of a visible file."""
        return [path.read_text()] if path.suffix == ".json" else []


class RealRows(RealSink):
    """Change tables."""

    @classmethod
    def format(cls, name: str, mixed: bool, largest: int) -> ModelFormat:
        return RowsFormat(name, mixed, largest)


class RealChangeFiles(RealRows):
    """Change tables as files."""

    def made(self) -> Any:
        return ChangeTableFiles(self.place, CSV)

    @staticmethod
    def told(path: Path) -> list[str]:
        if path.suffix != ".csv":
            return []
        with path.open(newline="") as file:
            return [row[-1] for row in csv.reader(file) if row[-1].startswith("[")]


class RealTables(RealRows):
    """Change tables in a database."""

    def made(self) -> Any:
        engine = connect(f"sqlite:///{self.place}", may_create=True)
        self.leaving.callback(engine.dispose)
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
        commit, self.plan = engine.dialect.do_commit, ""

        def do_commit(connection: Any) -> None:
            self.point("commit")
            commit(connection)
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as reading:
                self._look(reading)
            self.point("tabled")

        engine.dialect.do_commit = do_commit  # type: ignore[assignment]  # the one place that every commit passes
        return DatabaseSink(DatabaseSettings(url=""), engine)

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        self.plan = plan
        return super().commit(plan, documents)

    def _look(self, reading: Any) -> None:
        if not reading.execute(text("SELECT 1 FROM sqlite_master WHERE name = 't__ct'")).all():
            return
        rows = reading.execute(
            text("SELECT rowid, told FROM t__ct WHERE rowid > :seen ORDER BY 1"), {"seen": self.target.seen}
        )
        for number, told in rows.all():
            self.target.seen = int(number)
            take(self.target, told, self.plan)


class RealReceiver(ModelReceiver):
    """A receiver that answers as the model does, but in XML, or with what nobody can read."""

    address = "the receiver"
    discreet = staticmethod(str)

    def __init__(self, target: Target, world: World) -> None:
        super().__init__(target, world)
        poster: Any = self
        self.sink = HttpSink(HttpSettings(url="http://receiver.test"), poster)

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        return self.sink.commit(plan, documents)

    def post(self, document: Document, plan: str = "") -> HttpAnswer:
        try:
            outcomes = self.send(plan, document)
        except OccupiedError:
            return HttpAnswer(status=409, body=b"", overtaken=True)
        except SinkError:
            return HttpAnswer(status=503, body=b"Later.")
        if any(outcome.unread for outcome in outcomes):
            return HttpAnswer(status=200, body=b"<nds><output>")
        said = {outcome.position: LEVELS[outcome.status] for outcome in outcomes}
        statuses = [
            f'<status level="{said[positions[0]]}" event-id="{event_id}">as it happens</status>'
            for event_id, positions in document.covers.items()
            if positions[0] in said
        ]
        body = f'<nds dtdversion="2.0"><output>{"".join(statuses)}</output></nds>'
        return HttpAnswer(status=200, body=body.encode())


def take(target: Target, told: str, plan: str) -> None:
    target.take(Document(id="", body=told.encode(), covers={}), plan)


def hidden_in(folder: Path) -> list[str]:
    """List the files of plans a folder still hides. Its owners' files are left out: all publishers are one process
    here.
    """
    return [str(path) for path in folder.rglob("*.part") if path.parent.name != OWNERS]


@contextmanager
def real_targets(world: World) -> Iterator[None]:
    """Make each step in the targets' folders a point, before and after it; files shown there have arrived."""
    below = f"{world.folder}{os.sep}"

    def stepping(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **named: Any) -> Any:
            path = given[1] if name == "replace" else given[0]
            makes = name != "open" or given[1] & os.O_CREAT
            if not makes or not os.fspath(path).startswith(below):
                return function(*given, **named)
            _point(world, f"before {name}")
            found = function(*given, **named)
            if name == "replace":
                _show(world, Path(given[0]), Path(path))
            if name != "open":  # nobody would close it
                _point(world, "hidden")
            return found

        return step

    steps: dict[str, Any] = {name: stepping(name, getattr(os, name)) for name in STEPS}
    steps["fsync"] = lambda _: None  # what nobody reads need not reach a disk
    warnings = patch.object(logging.getLogger(HttpSink.__module__), "disabled", True)
    with warnings, patch.multiple(os, **steps):
        yield


def _point(world: World, what: str) -> None:
    try:
        world.point(what)
    except PassingError as error:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error


def _show(world: World, former: Path, path: Path) -> None:
    hidden = _hidden(former.name)
    if hidden is None or path.name.startswith("."):
        return
    name = path.relative_to(world.folder).parts[0]
    kind: Any = world.real[name[0]]
    for told in kind.told(path):
        take(world.targets[name], told, unquote(hidden[1]))


REAL: Final[Sequence[dict[str, type[RealSink | RealReceiver]]]] = (
    {"f": RealFiles, "t": RealTables, "r": RealReceiver},
    {"f": RealChangeFiles, "t": RealTables, "r": RealReceiver},
)
