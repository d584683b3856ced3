"""How far one updated row walks through the package, from the log to its document and its status.

    python -m bench.walk
    python -m bench.walk calls

It prints the walk of a row that comes alone, to two outputs, while another row is held, both, and into
messages, and that of a file with one row that `eventlog convert` makes a document of. With `calls` it lists each one's calls in their order, each with how often it comes. It uses
the public API alone: a log made by the commands, `Publisher.from_config`, `run_once`. What is opened and
looked at once is no part of the walk: two rows are published before the one that is followed.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import FrameType

from click.testing import CliRunner
from msgspec import Struct

import eventlog
from eventlog.cli.main import main

PACKAGE = str(Path(eventlog.__file__).parent) + "/"
TABLE = "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, mail TEXT)"


class Walk(Struct, frozen=True):
    """The calls, in their order: the file below the package, the function, and its first line."""

    calls: tuple[tuple[str, str, int], ...]

    @property
    def files(self) -> set[str]:
        return {file for file, *_ in self.calls}

    @property
    def functions(self) -> int:
        return len(set(self.calls))

    @property
    def changes(self) -> int:
        """How often the next call is in another file."""
        return sum(one[0] != other[0] for one, other in pairwise(self.calls))

    def lines(self) -> int:
        """Lines of the files."""
        return sum(len((Path(PACKAGE) / file).read_text(encoding="utf-8").splitlines()) for file in self.files)


class Scene(Struct, frozen=True):
    """What stands beside the row: how many outputs, of which format, and whether a row of another object is held."""

    outputs: int = 1
    is_held: bool = False
    format: str = "xds"


SCENES = {
    "alone": Scene(),
    "two outputs": Scene(outputs=2),
    "another row held": Scene(is_held=True),
    "two outputs, another row held": Scene(outputs=2, is_held=True),
    "messages": Scene(format="messages"),
}


ROW = (
    '{"record_id": 1, "table_name": "person", "table_key": "id=1", "column_name": "name", "event_type": 2,'
    ' "event_time": "2026-01-01 00:00:00", "perpetrator": "app", "old_value": "Bob", "new_value": "Zoe", "status": "N"}'
)
"""The same update as rows in files have it."""

Calls = list[tuple[str, str, int]]


@contextmanager
def following(calls: Calls) -> Iterator[None]:
    """Note the calls of the package's functions during the block."""

    def entered(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            code = frame.f_code
            calls.append((code.co_filename.removeprefix(PACKAGE), code.co_qualname, code.co_firstlineno))

    before = sys.getprofile()
    sys.setprofile(entered)
    try:
        yield
    finally:
        sys.setprofile(before)


def walk_of_a_conversion(folder: Path) -> Walk:
    """Converts a row with one process, in this one, and follows it: the second time, when all is loaded."""
    calls: Calls = []
    rows = folder / "rows.jsonl"
    rows.write_text(f"{ROW}\n", encoding="utf-8")
    for name in ("first", "followed"):
        words = ["convert", str(rows), "--out", str(folder / name), "--engine", "local[1]"]
        with following(calls) if name == "followed" else nullcontext():
            CliRunner().invoke(main, words, catch_exceptions=False)
    if "Zoe" not in (folder / "followed" / "part-00000.xml").read_text(encoding="utf-8"):
        raise SystemExit("the row was not converted")
    return Walk(tuple(calls))


def walk_of_a_row(folder: Path, scene: Scene = SCENES["alone"]) -> Walk:
    """Publishes a row and follows it, with a log in an empty folder."""
    database = folder / "app.db"
    url, out = f"sqlite:///{database}", folder / "out"
    calls: Calls = []
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(TABLE)
        connection.execute("INSERT INTO person VALUES (1, 'Jack', 'j@x'), (2, 'Jill', 'i@x')")
        connection.commit()
        for words in (["install"], ["track", "person"]):
            CliRunner().invoke(main, [*words, "--database", url], catch_exceptions=False)
        config = folder / "eventlog.toml"
        settings = f'[source]\nurl = "{url}"\n[publisher]\nallow_loopback = true\n'
        for number in range(scene.outputs):
            settings += f'[[output]]\nname = "f{number}"\nsink = "files"\nformat = "{scene.format}"\n'
            settings += f'path = "{out / str(number)}"\n'
        config.write_text(settings)
        if scene.is_held:
            connection.execute("UPDATE person SET name = 'June' WHERE id = 2")
            connection.commit()
            CliRunner().invoke(main, ["hold", "1", "--database", url], catch_exceptions=False)
        with eventlog.Publisher.from_config(config) as publisher:
            for name in ("Ann", "Bob", "Zoe"):
                connection.execute("UPDATE person SET name = ? WHERE id = 1", (name,))
                connection.commit()
                with following(calls) if name == "Zoe" else nullcontext():
                    publisher.run_once()
    documents = [file.read_text(encoding="utf-8") for file in out.rglob("*") if file.is_file()]
    if sum("Zoe" in document for document in documents) != scene.outputs or any("June" in text for text in documents):
        raise SystemExit("the row was not published, or the one that is held was")
    return Walk(tuple(calls))


WALKS: dict[str, Callable[[Path], Walk]] = {
    **{name: partial(walk_of_a_row, scene=scene) for name, scene in SCENES.items()},
    "conversion": walk_of_a_conversion,
}


if __name__ == "__main__":
    for name, follow in WALKS.items():
        with tempfile.TemporaryDirectory(prefix="walk-") as room:
            walk = follow(Path(room))
        if sys.argv[1:] == ["calls"]:
            often = Counter(walk.calls)
            for call in walk.calls:
                print(f"{call[0]}:{call[2]} {call[1]} x{often[call]}")
        print(f"{name}: functions {walk.functions}, calls {len(walk.calls)}, changes of file {walk.changes}")
        print(f"files {len(walk.files)}, lines of them {walk.lines():,}")
        print(Counter(file.split("/")[0] for file, *_ in walk.calls).most_common(8))
