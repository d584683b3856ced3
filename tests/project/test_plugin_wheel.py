"""The worked example of docs/how-to/plug-ins.md: a sink in a wheel of its own is built, installed, proven, run and killed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep

import pytest
from hatchling.builders.wheel import WheelBuilder
from sqlalchemy import create_engine

from docs.plots import FILE, show_file
from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.tracked.options import TriggerOptions
from tests.conformance.event_logs import LogTable
from tests.project.test_people import Reader
from tests.support.plugins import proven_by_pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "tests" / "examples" / "inbox"
PAGE = ROOT / "docs" / "how-to" / "plug-ins.md"
ROWS = 60
READ_WORDS = 910


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with the example, as pip has put it there."""
    folder = tmp_path_factory.mktemp("plugin")
    (wheel,) = WheelBuilder(str(EXAMPLE)).build(directory=str(folder / "dist"), versions=["standard"])
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", str(folder / "site"), wheel], check=True, env={**os.environ, "HOME": str(folder)})
    return folder / "site"


def environment(site: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}


def eventlog(site: Path, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "eventlog", *arguments, "--config", "eventlog.toml"]
    return subprocess.Popen(
        command, cwd=folder, env=environment(site), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def test_the_page_shows_all_of_it() -> None:
    shown = {
        link["path"]: show_file(link).partition("\n")[2].removesuffix("\n```")
        for link in FILE.finditer(PAGE.read_text())
    }
    files = [f"tests/examples/inbox/{name}" for name in ("pyproject.toml", "eventlog_inbox.py", "inbox_test.py")]
    assert {file: shown[file] for file in files} == {file: (ROOT / file).read_text().rstrip() for file in files}


def test_who_reads_the_readme_finds_the_page_and_does_not_read_long(tmp_path: Path) -> None:
    """Before (e597e0b3) README and the page on the API had 962 words, and neither showed an output in a wheel."""
    author = Reader(tmp_path, {}, {})
    assert (
        "docs/how-to/plug-ins.md"
        in (ROOT / "README.md").read_text().partition("## Three ways in")[2].partition("## ")[0]
    )
    for heading in ("", "A sink", "Prove it"):
        author.read("docs/how-to/plug-ins.md", heading)
    assert author.words <= READ_WORDS


def test_the_author_has_proven_it(site: Path, tmp_path: Path) -> None:
    alone = ("-c", os.devnull, "--rootdir", tmp_path)
    said = proven_by_pytest(*alone, EXAMPLE / "inbox_test.py", cwd=tmp_path, env=environment(site))
    assert "11 passed" in said


def test_it_publishes_each_row_once_whenever_it_is_killed(site: Path, tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'log.db'}")
    install(engine)
    log = LogTable(engine)
    log.run("CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname TEXT)")
    track(engine, ("usr",), TriggerOptions())
    for number in range(1, ROWS + 1):
        log.run(f"INSERT INTO usr VALUES ({number}, 'Ada')")
    inbox = tmp_path / "inbox.db"
    (tmp_path / "eventlog.toml").write_text(
        f'[source]\nurl = "sqlite:///{tmp_path / "log.db"}"\n[publisher]\nquery_limit = 10\nallow_loopback = true\n'
        f'[[output]]\nname = "inbox"\nsink = "inbox"\npath = "{inbox}"\n'
    )
    checked = eventlog(site, tmp_path, "check")
    assert "sink inbox of the package eventlog-inbox 1.0" in checked.communicate()[0]
    looked = eventlog(site, tmp_path, "run", "--look")
    assert 'event-id="10"' in looked.communicate()[0]
    assert looked.returncode == 0
    for there in (10, 30):  # documents after which it is killed
        running = eventlog(site, tmp_path, "run")
        deadline = monotonic() + 60
        try:
            while len(documents(inbox)) < there:
                assert running.poll() is None
                assert monotonic() < deadline
                sleep(0.01)
        finally:
            running.kill()
            running.communicate()
    ended = eventlog(site, tmp_path, "run", "--until-empty")
    said = ended.communicate()[0]
    assert ended.returncode == 0, said
    ids = documents(inbox)
    assert len(ids) == len(set(ids)) == ROWS
    assert set(log.statuses().values()) == {"S"}
    # Another file that names the sink, but not the output that has been published to.
    other = (tmp_path / "eventlog.toml").read_text().replace('name = "inbox"', 'name = "another"')
    (tmp_path / "eventlog.toml").write_text(other)
    refused = eventlog(site, tmp_path, "run", "--until-empty")
    assert "this configuration has another alone" in refused.communicate()[0]
    assert refused.returncode == 78
    engine.dispose()


def documents(inbox: Path) -> list[str]:
    if not inbox.exists():
        return []
    with closing(sqlite3.connect(inbox)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'inbox'").fetchone():
            return []
        return [row[0] for row in connection.execute("SELECT id FROM inbox ORDER BY number")]
