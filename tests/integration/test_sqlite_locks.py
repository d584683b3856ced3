"""The locks of SQLite: the system drops all that a process has on a file as soon as it closes that file anywhere.

Then the next process that ends a connection believes to be the last one, and deletes the WAL with what is committed there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from eventlog.sql.connect import connect
from tests.hardening.crash import configure, prepare
from tests.hardening.targets import ChangeTables

# An audit hook cannot be taken back, so all of it is another process.
ASKED = """
import json, sys
from contextlib import suppress
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from eventlog.cli.main import main
for command in json.loads(sys.argv[1]):
    with suppress(SystemExit):
        main.main(command, prog_name="eventlog")
print(json.dumps([name for name in opened if name.endswith(".db")]), file=sys.stderr)
"""
TAKES_AND_ENDS = (
    "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM t').fetchall(); c.close()"
)
COUNTS = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM t').fetchone()[0])"


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)


def test_who_opens_a_database_again_leaves_its_connections_their_locks(sqlite: Engine) -> None:
    file = sqlite.url.database or ""
    with sqlite.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=wal")
        connection.exec_driver_sql("CREATE TABLE t (a)")
        connection.commit()
        connect(sqlite.url.render_as_string()).dispose()
        python(TAKES_AND_ENDS, file)  # the last one that ends deletes the WAL
        connection.execute(text("INSERT INTO t VALUES (1)"))
        connection.commit()
        assert python(COUNTS, file).stdout == "1\n"


@pytest.mark.parametrize("kind", ["journal", "wal"])
def test_no_command_opens_a_database_but_by_sqlite(kind: str, sqlite: Engine, tmp_path: Path) -> None:
    aim = ChangeTables(sqlite, tmp_path)
    prepare(sqlite, aim.style)
    with sqlite.begin() as connection:
        connection.exec_driver_sql(f"PRAGMA journal_mode={'wal' if kind == 'wal' else 'delete'}")
    with sqlite.begin() as connection:
        connection.execute(text("INSERT INTO usr (idu, fname) VALUES (1, 'Jack')"))
    config = ["-c", str(configure(sqlite, tmp_path, aim))]
    names = ["check", "status", "log", "outputs", "track", "verify", "purge", "rules"]
    commands = [
        ["run", *config, "--until-empty"],
        *[[name, *config] for name in names],
        ["log", *config, "--record", "1"],
    ]
    sqlite.dispose()
    ended = python(ASKED, json.dumps(commands))
    assert json.loads(ended.stderr.splitlines()[-1]) == [], ended.stderr
    assert "Traceback" not in ended.stderr
