"""How far one updated row walks through the package, from the log to its document and its status.

    python -m bench.walk
    python -m bench.walk calls

With `calls` it lists them in their order, each with how often it comes. It uses the public API
alone: a log made by the commands, `Publisher.from_config`, `run_once`. What is opened and looked at
once is no part of the walk: two rows are published before the one that is followed.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections import Counter
from contextlib import closing
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


def walk_of_a_row(folder: Path) -> Walk:
    """Publishes a row and follows it, with a log in an empty folder."""
    database = folder / "app.db"
    url, out = f"sqlite:///{database}", folder / "out"
    calls: list[tuple[str, str, int]] = []

    def entered(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            code = frame.f_code
            calls.append((code.co_filename.removeprefix(PACKAGE), code.co_qualname, code.co_firstlineno))

    with closing(sqlite3.connect(database)) as connection:
        connection.execute(TABLE)
        connection.execute("INSERT INTO person VALUES (1, 'Jack', 'j@x')")
        connection.commit()
        for words in (["install"], ["track", "person"]):
            CliRunner().invoke(main, [*words, "--database", url], catch_exceptions=False)
        config = folder / "eventlog.toml"
        config.write_text(
            f'[source]\nurl = "{url}"\n[publisher]\nallow_loopback = true\n'
            f'[[output]]\nname = "f"\nsink = "files"\npath = "{out}"\n'
        )
        with eventlog.Publisher.from_config(config) as publisher:
            for name in ("Ann", "Bob", "Eve"):
                connection.execute("UPDATE person SET name = ?", (name,))
                connection.commit()
                before = sys.getprofile()
                if name == "Eve":
                    sys.setprofile(entered)
                try:
                    publisher.run_once()
                finally:
                    sys.setprofile(before)
    if not any("Eve" in document.read_text(encoding="utf-8") for document in out.rglob("*.xml")):
        raise SystemExit("the row was not published")
    return Walk(tuple(calls))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="walk-") as room:
        walk = walk_of_a_row(Path(room))
    if sys.argv[1:] == ["calls"]:
        often = Counter(walk.calls)
        for call in walk.calls:
            print(f"{call[0]}:{call[2]} {call[1]} x{often[call]}")
    print(f"functions {walk.functions}, calls {len(walk.calls)}, changes of file {walk.changes}")
    print(f"files {len(walk.files)}, lines of them {walk.lines():,}")
    print(Counter(file.split("/")[0] for file, *_ in walk.calls).most_common(8))
