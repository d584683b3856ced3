"""Ctrl-C ends every command at once with one sentence: while it waits for a server, in the midst of its work, while it loads."""

from __future__ import annotations

import os
import pty
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from time import monotonic

import pytest
from sqlalchemy import create_engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.cli.main import COMMANDS
from tests.integration.publishing import until
from tests.support.forking import Forked

ASKING = (
    *("status", "log", "log --follow", "explain 1", "hold 1", "release 1", "requeue 1", "purge --older-than 1d --yes"),
    *("install", "upgrade", "uninstall --yes", "track usr", "untrack usr", "triggers", "catalog usr", "check"),
    *("rights --publisher idm --all", "outputs list", "refresh usr", "verify", "web", "apply usr"),
)
"""Commands that look into a database."""

CONVERTING = "convert database {server} --out documents --engine local"
BRIEF = frozenset({"emulate", "config", "rules", "policy", "help", "completion", "man"})
"""Commands that ask nobody: they are interrupted while they are loaded, if at all."""

SENTENCE = "eventlog: interrupted."
PLAIN = {
    **{name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")},
    "NO_COLOR": "1",
    "PYTHONUNBUFFERED": "1",
}


class Called:
    """A command on its way, and what it has said until now."""

    def __init__(self, process: Forked | subprocess.Popen[bytes], place: Path) -> None:
        self.place = place
        self.pipe: int | None = None
        self._process = process

    def sleeps(self) -> bool:
        """Whether it waits for somebody: a Ctrl-C just before it begins to read is seen only after the answer."""
        state = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "S"

    def said(self) -> str:
        return (self.place / "out").read_text() + (self.place / "err").read_text()

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def pressed(self) -> tuple[str, int]:
        """What it says on standard error once somebody pressed Ctrl-C, and how it ends."""
        before = len((self.place / "err").read_text())
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(60)
        return (self.place / "err").read_text()[before:].strip("\n"), code


@contextmanager
def called(*arguments: str, place: Path, asks: bool = False) -> Iterator[Called]:
    """The command; one that `asks` has somebody before it who does not answer."""
    with (place / "out").open("wb") as out, (place / "err").open("wb") as err:
        process: Forked | subprocess.Popen[bytes]
        somebody, terminal = pty.openpty()
        if asks:
            command = [sys.executable, "-m", "eventlog", *arguments]
            process = subprocess.Popen(command, cwd=place, env=PLAIN, stdin=terminal, stdout=out, stderr=err)
        else:
            process = Forked(*arguments, cwd=place, environment=PLAIN, out=out, err=err)
        it = Called(process, place)
        try:
            yield it
        finally:
            process.kill()
            process.wait()
            if it.pipe is not None:
                os.close(it.pipe)
            os.close(somebody)
            os.close(terminal)


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(60)
        yield listening


@pytest.mark.parametrize("command", [*ASKING, CONVERTING, f"{CONVERTING} --mark"])
def test_a_command_that_waits_for_a_server(command: str, server: socket.socket, tmp_path: Path) -> None:
    url = f"postgresql+psycopg://idm@127.0.0.1:{server.getsockname()[1]}/app"
    arguments = command.format(server=url).split()
    arguments += [] if "{server}" in command else ["--database", url]
    with called(*arguments, place=tmp_path) as it, server.accept()[0]:
        said, code = it.pressed()
    assert (said, code) == ("eventlog: interrupted.", 130)


def test_a_publisher_that_waits_for_a_server(server: socket.socket, tmp_path: Path) -> None:
    url = f"postgresql+psycopg://idm@127.0.0.1:{server.getsockname()[1]}/app"
    with called("run", "--database", url, place=tmp_path) as it, server.accept()[0]:
        began = monotonic()
        said, code = it.pressed()
    assert monotonic() - began < 10, "it does not wait until the connection fails"
    assert len(said.splitlines()) == 1, said
    assert "stopped" in said, "a publisher writes lines for people, also into a pipe"
    assert code == 0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a log of which ten rows wait."""
    engine = create_engine(f"sqlite:///{tmp_path}/app.db")
    install(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE usr (idu INTEGER PRIMARY KEY)")
    track(engine, ["usr"])
    with engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO usr VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
    engine.dispose()
    (tmp_path / "eventlog.toml").write_text('[source]\nurl = "sqlite:///app.db"\n')
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def says(words: str) -> Callable[[Called], bool]:
    return lambda it: words in it.said()


def asks(words: str) -> Callable[[Called], bool]:
    return lambda it: words in it.said() and it.sleeps()


def writes(name: str) -> Callable[[Called], bool]:
    return lambda it: (it.place / name).exists()


def reads(it: Called) -> bool:
    """Whether it waits for bytes of the pipe, which has no end while this process has it open.

    Python sees a signal between two of its steps, or because it interrupts a read. One that comes in the
    microseconds between the last step and the read waits for the next one, in every program of Python.
    """
    if it.pipe is None:
        with suppress(OSError):
            it.pipe = os.open(it.place / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    return it.pipe is not None and it.sleeps()


def loads(it: Called) -> bool:
    """Whether rows of a full load wait, as many as may."""
    with closing(sqlite3.connect(it.place / "app.db")) as connection:
        [(rows,)] = connection.execute("SELECT count(*) FROM event_log")
    return bool(rows == 12)


WORKING = {
    "web --port 0": (says("The page is at"), "The page has ended.", 0),
    "receive --port 0": (says("Ctrl-C ends it"), "The receiver has ended.", 0),
    "log --follow": (says("idu=9"), SENTENCE, 130),
    "demo --keep kept": (writes("kept/demo.db"), SENTENCE, 130),
    "init --force": (asks("The database"), SENTENCE, 130),
    "uninstall --purge": (asks("cannot be restored"), SENTENCE, 130),
    "validate pipe": (reads, SENTENCE, 130),
    "decode gbase pipe": (reads, SENTENCE, 130),
    "refresh usr --chunk 1 --backlog 12": (
        loads,
        "eventlog: interrupted; usr: 2 rows written, and the same command continues from there.",
        130,
    ),
}


@pytest.mark.parametrize("command", WORKING)
def test_a_command_in_the_midst_of_its_work(command: str, place: Path) -> None:
    ready, sentence, code = WORKING[command]
    with called(*command.split(), place=place, asks=command in {"init --force", "uninstall --purge"}) as it:
        until(lambda: ready(it) or it.has_ended(), f"{command} is at work")
        assert not it.has_ended(), it.said()
        assert it.pressed() == (sentence, code)


def test_every_command_is_one_of_these() -> None:
    tried = {one.split()[0] for one in (*ASKING, CONVERTING, *WORKING)}
    assert set(COMMANDS) - tried - BRIEF == {"run"}, "tests/unit/cli/test_interrupted.py tells what `run` says"


def test_a_command_that_is_being_loaded(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    path = os.pathsep.join((str(tmp_path), *filter(None, sys.path)))
    done = subprocess.run(
        [sys.executable, "-c", "from eventlog_cdc import run; run()", "rules"],
        env={**PLAIN, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.stderr.strip("\n"), done.stdout, done.returncode) == (SENTENCE, "", 130)
