"""Targets: an output's part of the configuration, and what a reader who is not eventlog's finds
there, as it comes.

Each row of a history has a value of its own, `u000017`, which every format writes down; so rows are
found again in any.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct
from sqlalchemy import Engine, create_engine, inspect, text

from eventlog.config.outputs import OutputConfig
from eventlog.core.policies.steps import WithoutTables
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.outputs import FilesOutput, HttpOutput, StdoutOutput

if TYPE_CHECKING:
    from tests.histories.receiving import Receiver

_rows = re.compile(rb"\bu(\d{6})\b").findall

FILTERED: Final = "b"
"""The table that some outputs leave out."""


def rows_in(content: bytes) -> list[int]:
    """The rows that a text speaks of, in the order in which it does, each once."""
    return list(dict.fromkeys(int(found) for found in _rows(content)))


class Arrival(Struct, frozen=True):
    """A row has come to a target: with which document, and with which letter its receiver answered."""

    uid: int
    document: str
    letter: str = "S"


Told = Callable[["Target", Arrival], None]


class Target:
    """What outlives publishers. `came` has each row in the order in which it came, also what is not
    there any more.
    """

    kind: ClassVar[str]
    repeats: ClassVar[bool] = False
    """What was written once may come again after a crash: nobody can ask there."""
    replaces: ClassVar[bool] = False
    """A document that comes again takes the place of the former one."""

    def __init__(self, name: str, folder: Path, told: Told, *, filters: bool) -> None:
        self.name = name
        self.called = [name]
        """The name that its output has now, and those that it had before."""
        self.folder = folder
        self.filters = filters
        self.came: list[Arrival] = []
        self._told = told

    @property
    def output(self) -> OutputConfig:
        raise NotImplementedError

    def look(self) -> None:
        """Notes what has come since the last look."""

    def now(self) -> list[int]:
        """The rows that a reader finds at the end, in the order that is promised."""
        return [one.uid for one in self.came]

    def left_behind(self) -> list[str]:
        """What should not be there when everything is quiet."""
        return []

    def keys(self) -> dict[str, Any]:
        """What all kinds of outputs are told."""
        steps = (WithoutTables(classes=(FILTERED,)),) if self.filters else ()
        return {"name": self.called[-1], "former_names": tuple(self.called[:-1]), "steps": steps}

    def arrived(self, arrival: Arrival) -> None:
        self.came.append(arrival)
        self._told(self, arrival)


class Files(Target):
    """A folder. A file that is shown again takes its own place, and its rows have come again."""

    ending: ClassVar[str]

    def __init__(self, name: str, folder: Path, told: Told, *, filters: bool) -> None:
        super().__init__(name, folder, told, filters=filters)
        self.shown: dict[str, list[int]] = {}

    def changed(self, what: str, path: Path) -> None:
        """Something in the folder was renamed to this, or removed."""
        name = str(path.relative_to(self.folder))
        if path.name.startswith(".") or not name.endswith(self.ending) or "_dfm" in name:
            return
        if what in ("replace", "rename", "link"):
            found = rows_in(path.read_bytes())
            former = self.shown.pop(name, None) if not self.replaces else self.shown.get(name)
            self.shown[name] = found
            if former != found or self.replaces:
                for uid in found:
                    self.arrived(Arrival(uid, name))
        elif what in ("unlink", "remove"):
            self.shown.pop(name, None)

    def now(self) -> list[int]:
        return [uid for name in sorted(self.shown) for uid in self.shown[name]]

    def left_behind(self) -> list[str]:
        # In the folder of owners all publishers have one name here, for they are one process.
        parts = [path.relative_to(self.folder) for path in self.folder.rglob(".eventlog-*")]
        kept = (".shown",)  # says which plan stands in the folder
        hidden = [str(one) for one in parts if one.parts[0] != ".eventlog" and one.suffix not in kept]
        found = {str(path.relative_to(self.folder)) for path in self.folder.rglob(f"*{self.ending}")}
        visible = {name for name in found if "_dfm" not in name and not Path(name).name.startswith(".")}
        return hidden + sorted(visible ^ set(self.shown))


class XdsFiles(Files):
    """XDS documents, called after their last rows."""

    kind, ending, replaces = "x", ".xml", True

    @property
    def output(self) -> OutputConfig:
        return FilesOutput(path=str(self.folder), **self.keys())


class MessageFiles(Files):
    """Messages in files."""

    kind, ending = "m", ".jsonl"

    @property
    def output(self) -> OutputConfig:
        return FilesOutput(path=str(self.folder), format="messages", **self.keys())


class ChangeFiles(Files):
    """Change tables as files."""

    kind, ending = "c", ".csv"

    @property
    def output(self) -> OutputConfig:
        keys = self.keys()
        return FilesOutput(path=str(self.folder), format="change-tables", file_format="csv", **keys)

    def now(self) -> list[int]:
        names = sorted(self.shown, key=lambda name: Path(name).name)
        return [uid for name in names for uid in self.shown[name]]


class ChangeTables(Target):
    """Change tables in a database of their own."""

    kind = "d"

    def __init__(self, name: str, folder: Path, told: Told, *, filters: bool) -> None:
        super().__init__(name, folder, told, filters=filters)
        folder.mkdir(parents=True)
        self.url = f"sqlite:///{folder / 'target.db'}"
        self._engine: Engine = create_engine(self.url)
        with self._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")  # for the reason that grounds.py has
        self._seen: set[tuple[str, str]] = set()

    @property
    def output(self) -> OutputConfig:
        return DatabaseOutput(url=self.url, task=self.name, **self.keys())

    def look(self) -> None:
        for sequence, content in self._rows():
            if (sequence, content) not in self._seen:
                self._seen.add((sequence, content))
                for uid in rows_in(content.encode()):
                    self.arrived(Arrival(uid, sequence))

    def now(self) -> list[int]:
        return [uid for _, content in self._rows() for uid in rows_in(content.encode())]

    def close(self) -> None:
        self._engine.dispose()

    def _rows(self) -> list[tuple[str, str]]:
        if not (self.folder / "target.db").exists():
            return []
        found: list[tuple[str, str]] = []
        with self._engine.connect() as connection:
            for table in inspect(connection).get_table_names():
                if table.endswith("__ct"):
                    rows = connection.execute(text(f'SELECT * FROM "{table}"'))
                    found += [(str(row[0]), repr(tuple(row))) for row in rows]
        return sorted(found)


class Stdout(Target):
    """Standard output: a stream, from which nothing is taken back."""

    kind, repeats = "p", True

    @property
    def output(self) -> OutputConfig:
        return StdoutOutput(**self.keys())

    def stream(self) -> io.RawIOBase:
        """What a process writes to."""
        return _Written(self)


class _Written(io.RawIOBase):
    def __init__(self, target: Stdout) -> None:
        self._target = target

    def writable(self) -> bool:
        return True

    def write(self, content: object, /) -> int:
        assert isinstance(content, bytes)
        for uid in rows_in(content):
            self._target.arrived(Arrival(uid, ""))
        return len(content)


class Http(Target):
    """A receiver that knows documents by plan and id, and the highest epoch."""

    kind = "h"
    receiver: ClassVar[Receiver]

    @property
    def output(self) -> OutputConfig:
        return HttpOutput(url=self.receiver.url(self.name), **self.keys())


KINDS: Final[dict[str, type[Target]]] = {
    one.kind: one for one in (XdsFiles, MessageFiles, ChangeFiles, ChangeTables, Http, Stdout)
}


def of_path(targets: Iterable[Target], path: Path) -> Files | None:
    """The folder in which a file stands."""
    return next((one for one in targets if isinstance(one, Files) and path.is_relative_to(one.folder)), None)
