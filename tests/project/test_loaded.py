"""What a publisher of one log loads: its own rooms, and nothing that only other commands need."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

LINES = 25_700
"""The lines of eventlog's modules that a publisher of one SQLite log with XDS files has loaded after a document."""
NOT_LOADED = (
    "capture",
    "care",
    "check",
    "compare",
    "convert",
    "explain",
    "lineage",
    "purge",
    "queries",
    "refresh",
    "streams",
    "verify",
    "web",
)

PUBLISHER = """
    import json, sqlite3, sys
    import eventlog
    log, configuration = sys.argv[1:]
    with eventlog.Publisher.from_config(configuration) as publisher:
        with sqlite3.connect(log) as connection:
            connection.execute("UPDATE person SET name = 'b'")
        connection.close()
        assert publisher.run_once().documents == 1
    found = {name: module.__file__ for name, module in sys.modules.items() if name.startswith("eventlog.")}
    print(json.dumps({name: sum(1 for _ in open(file)) for name, file in found.items() if file}))
"""


def test_a_publisher_loads_its_own_rooms_alone(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    url = f"sqlite:///{log}"
    with sqlite3.connect(log) as connection:
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO person VALUES (1, 'a')")
    connection.close()
    for words in ("install", "track person"):
        run(sys.executable, "-m", "eventlog", *words.split(), "--database", url)
    configuration = tmp_path / "eventlog.toml"
    output = f'[[output]]\nname = "files"\nsink = "files"\npath = "{tmp_path / "out"}"\n'
    configuration.write_text(f'[source]\nurl = "{url}"\n[publisher]\nallow_loopback = true\n{output}')
    loaded = json.loads(run(sys.executable, "-c", dedent(PUBLISHER), str(log), str(configuration)))
    assert {name for name in loaded if name.split(".")[1] in NOT_LOADED} == set()
    assert sum(loaded.values()) <= LINES


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
