"""The publisher as a process: it starts, hears signals, can be watched, and every way in which it ends writes one last record."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from threading import enumerate as enumerate_threads
from urllib.request import urlopen

import pytest
from msgspec import Struct
from sqlalchemy import Engine

from eventlog.cli.mishaps import TERMINATED
from eventlog.core.errors import OK, SourceError
from eventlog.daemon.health import Ledger
from eventlog.daemon.publisher import Publisher
from eventlog.sources.log.lock import LogLock
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import PATIENCE, Process, config_of, finished, published, site, until, url_of
from tests.integration.scripted_server import ScriptedServer, answer
from tests.support.forking import Forked

ENDS = ("stopped", "fatal")


class End(Struct, frozen=True, kw_only=True):
    """A way to end: what is put into the program, options, environment, and what is told of it."""

    name: str
    code: int
    said: str = ""
    program: str = ""
    options: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    rows: int = 1


FULL = (
    "import errno; from eventlog.sinks import files\n"
    "def full(*_, **__): raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))\n"
    "files.FileSink.commit = full"
)
FAULT = (
    "from eventlog.daemon.publisher import Publisher\n"
    "def fault(*_, **__): raise ZeroDivisionError('a fault put in')\n"
    "Publisher._turn = fault"
)
UNFINISHED = (
    "from eventlog.daemon.publisher import Publisher; from sqlalchemy.exc import PendingRollbackError\n"
    "def lost(*_, **__):\n"
    "    raise PendingRollbackError(\"Can't reconnect until invalid transaction is rolled back.\", code='8s2b')\n"
    "Publisher._turn = lost"
)
LIBRARY = "import logging; logging.getLogger('their.pool').error('Exception during reset or similar')"
INTERRUPT = (
    "from eventlog.daemon.publisher import Publisher\n"
    "def broken(*_, **__): raise KeyboardInterrupt\n"
    "Publisher._turn = broken"
)
NOBODY_READS = "import sys; os.close(1); r, w = os.pipe(); os.close(r); os.dup2(w, 1) if w != 1 else None"

THREAD = (
    "import threading, warnings; from eventlog.daemon import publisher as p; old = p.outputs_of\n"
    "def fault(): raise ValueError('their thread')\n"
    "class Lost:\n    def __del__(self): raise ValueError('their end')\n"
    "def told(c):\n"
    "    one = threading.Thread(target=fault); one.start(); one.join()\n"
    "    Lost(); warnings.warn('their warning', stacklevel=1)\n"
    "    return old(c)\n"
    "p.outputs_of = told"
)
"""What Python prints by itself of a library's thread, of what is thrown away, and of warnings."""

SLOW = """
import os, time
from eventlog.daemon.publisher import Publisher
from eventlog.sinks import files
def say(action):
    os.write(2, b'{"action": "%s"}\\n' % action)
def slow(*_, **__):
    say(b'writing')
    time.sleep(600)
def asked(publisher, stop=Publisher.stop):
    say(b'asked')
    stop(publisher)
files.FileSink.commit = slow
Publisher.stop = asked
"""

ALL = (
    End(name="one cycle", code=0, options=("--once",)),
    End(name="until empty", code=0, options=("--until-empty",)),
    End(name="nothing to do", code=0, options=("--until-empty",), rows=0),
    End(name="a setting that there is not", code=78, environment={"EVENTLOG_PUBLISHER__POLING_INTERVAL": "3"}),
    End(name="no database named", code=78, said="No database is named", environment={"EVENTLOG_SOURCE__URL": ""}),
    End(name="no such file", code=78, environment={"EVENTLOG_SOURCE__URL": "sqlite:////nowhere/at/all.db"}),
    End(name="the log is missing", code=78, said="no_such_log", options=("--log", "no_such_log")),
    End(name="disk full", code=75, said="No space left", program=FULL, options=("--until-empty",)),
    End(name="a fault of ours", code=70, said="a fault put in", program=FAULT),
    End(name="a fault of ours in one cycle", code=70, said="ZeroDivisionError", program=FAULT, options=("--once",)),
    End(name="a lost connection", code=69, said="the connection was lost", program=UNFINISHED),
    End(name="a library's text", code=0, program=LIBRARY, options=("--once",)),
    End(name="what Python prints", code=0, program=THREAD, options=("--once",)),
    End(name="broken off", code=130, said="Interrupted", program=INTERRUPT),
    End(name="nobody reads", code=69, said="Nobody reads", program=NOBODY_READS, options=("--once",)),
    End(name="no such address", code=78, said="is no address", options=("--http", "nothing")),
)


@pytest.fixture
def log(sqlite: Engine) -> LogTable:
    return site(sqlite)


def ended(log: LogTable, tmp_path: Path, end: End, style: str = "json") -> tuple[int, list[str]]:
    """The exit code, and the lines of the journal."""
    to_stdout = end.program == NOBODY_READS
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    environment |= {"EVENTLOG_SOURCE__URL": url_of(log.engine), "EVENTLOG_PUBLISHER__ALLOW_LOOPBACK": "yes"}
    start = f"import os\n{end.program}\n"
    where = () if to_stdout else ("--out", str(tmp_path / "out"))
    if end.program == LIBRARY:
        start = start.replace(
            LIBRARY,
            f"from eventlog.daemon import publisher as p; old = p.outputs_of\n"
            f"def told(c):\n    {LIBRARY}\n    return old(c)\np.outputs_of = told",
        )
    words = ("run", *where, "--log-format", style, *end.options)
    with (tmp_path / "said").open("w+") as said:
        done = Forked(*words, environment=environment | end.environment, cwd=tmp_path, err=said, program=start)
        try:
            code = done.wait(PATIENCE)
        finally:
            done.kill()
        said.seek(0)
        return code, said.read().splitlines()


@pytest.mark.parametrize("end", ALL, ids=lambda end: end.name)
def test_each_end_is_one_record_with_the_exit_code(log: LogTable, tmp_path: Path, end: End) -> None:
    for number in range(end.rows):
        log.write(number + 1)
    code, lines = ended(log, tmp_path, end)
    assert code == end.code, lines
    records = [json.loads(line) for line in lines]  # nothing else stands there
    assert [record["action"] for record in records if record["action"] in ENDS] == [records[-1]["action"]]
    last = records[-1]
    assert (last["action"], last["exit_code"]) == ("fatal" if code else "stopped", code)
    assert end.said in last.get("error", "")
    assert bool(code) == bool(last.get("error"))


def test_the_record_is_in_the_format_that_was_chosen(log: LogTable, tmp_path: Path) -> None:
    end = End(name="", code=70, program=FAULT)
    code, lines = ended(log, tmp_path, end, "console")
    assert code == 70
    assert "fatal" in lines[-1]
    assert "exit_code=70" in lines[-1]
    assert "a fault put in. This is a fault of eventlog" in lines[-1]


def test_a_second_sigterm_breaks_off_and_is_told(log: LogTable, tmp_path: Path) -> None:
    log.write(1)
    with Process(log.engine, tmp_path / "out", program=SLOW) as process:
        process.wait_for("writing")
        process.tell(signal.SIGTERM)
        process.wait_for("asked")  # or both are one to Python
        process.tell(signal.SIGTERM)
        assert process.end() == TERMINATED
    assert process.journal[-1].items() >= {"action": "fatal", "exit_code": TERMINATED}.items()
    assert "second SIGTERM" in str(process.journal[-1]["error"])
    assert len(process.said.read_text().splitlines()) == len(process.journal), "nothing else stands there"
    log.write(2)
    with Process(log.engine, tmp_path / "out") as process:
        until(finished(log, 2), "the batch that was broken off")
        assert process.stop() == OK


def test_a_database_that_goes_away_ends_a_single_cycle_with_75(postgresql: Engine, tmp_path: Path) -> None:
    log = site(postgresql)
    log.write(1)
    gone = (
        "from eventlog.sinks import files; old = files.FileSink.commit\n"
        "def then_gone(*a, **k):\n"
        "    import psycopg\n"
        f"    with psycopg.connect('{url_of(postgresql).replace('+psycopg', '')}', autocommit=True) as c:\n"
        "        c.execute('SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND datname = current_database()')\n"
        "    return old(*a, **k)\n"
        "files.FileSink.commit = then_gone"
    )
    code, lines = ended(log, tmp_path, End(name="", code=75, program=gone, options=("--once",)))
    records = [json.loads(line) for line in lines]
    assert (code, records[-1]["action"], records[-1]["exit_code"]) == (75, "fatal", 75)
    assert [record["action"] for record in records if record["action"] in ENDS] == ["fatal"]


def test_a_database_that_is_not_there_is_waited_for_and_a_stop_ends_that(log: LogTable, tmp_path: Path) -> None:
    away = log.engine.url.set(drivername="postgresql+psycopg", host="127.0.0.1", port=1, database="d", username="u")
    options = ("--database", away.render_as_string(hide_password=False))
    with Process(log.engine, tmp_path / "out", *options) as process:
        process.wait_for("failed")
        assert process.stop() == OK
    assert process.actions()[-1] == "stopped"
    end = End(name="", code=75, options=(*options, "--once"))
    code, lines = ended(log, tmp_path, end)
    assert (code, len(lines)) == (75, 1)
    assert json.loads(lines[0]).items() >= {"action": "fatal", "exit_code": 75}.items()


FATAL = b'<output><status level="fatal">Closed for good.</status></output>'


def test_who_cannot_say_goodbye_to_a_log_keeps_nobody_from_it(
    log: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next publisher of the same process would stand by for ever, for the lease was renewed."""

    def away(*_: object, **__: object) -> None:
        raise SourceError("the connection was lost", may_pass=True)

    config, others = config_of(log.engine, tmp_path / "out"), set(enumerate_threads())
    first = Publisher(config)
    first.run_once()
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "enter", away)
        first.close()
    second = Publisher(config)
    assert second.post.take(second._outputs)
    with monkeypatch.context() as patched:
        patched.setattr(LogLock, "leave", away)
        second.close()
    assert set(enumerate_threads()) <= others, "no lease is renewed any more"


def test_it_publishes_what_comes_and_ends_when_it_is_told_to(log: LogTable, tmp_path: Path) -> None:
    log.write(1, key="idu=1")
    with Process(log.engine, tmp_path / "out") as process:
        until(finished(log, 1), "the row that was there")
        log.write(2, key="idu=2")
        until(finished(log, 2), "the row that came")
        assert process.stop() == 0
        assert process.actions() == ["started", "lock_taken", "published", "published", "stopped"]
        assert process.journal[-1]["exit_code"] == 0
        assert process.journal[2].items() >= {"rows": 1, "changes": 1, "documents": 1, "statuses": {"S": 1}}.items()
    assert list(published(tmp_path / "out").values()) == [["1"], ["2"]]
    assert (
        log.ask(
            "SELECT name FROM event_log_mark WHERE name NOT IN"
            " ('log adopted', 'pace', 'outputs', 'log', 'epoch', 'holding', 'written', 'served', 'current at')"
        )
        == []
    )


def test_a_batch_that_was_begun_is_finished_before_it_ends(log: LogTable, tmp_path: Path) -> None:
    """The signal comes while the first document is being written."""
    log.write_all(range(1, 51))
    slow = (
        "import os, signal; from eventlog.sinks.files import FileSink\n"
        "commit = FileSink.commit\n"
        "def late(self, plan, documents):\n    os.kill(os.getpid(), signal.SIGTERM); return commit(self, plan, documents)\n"
        "FileSink.commit = late"
    )
    with Process(log.engine, tmp_path / "out", program=slow) as process:
        assert process.end() == 0
    assert set(log.statuses().values()) == {"S"}
    assert len(published(tmp_path / "out")) == 50


def test_it_reads_its_configuration_again_and_keeps_the_former_when_it_must(log: LogTable, tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    heart = "[publisher]\nheartbeat_interval = 0.01\n"
    file.write_text("")
    with Process(log.engine, tmp_path / "out", "--config", str(file)) as process:
        process.wait_for("lock_taken")
        file.write_text("[publisher]\npoling_interval = 3\n")
        process.tell(signal.SIGHUP)
        assert "polling_interval" in process.wait_for("reload_failed")["error"]
        process.wait_for("lock_taken", 2)
        file.write_text(heart)
        process.tell(signal.SIGHUP)
        process.wait_for("reloaded")
        process.wait_for("heartbeat")
        log.write(1)
        until(finished(log, 1), "a row after reloading")
        assert process.stop() == 0


def test_it_goes_back_to_the_former_configuration_when_the_target_of_another_cannot_be_used(
    log: LogTable, tmp_path: Path
) -> None:
    file, out = tmp_path / "eventlog.toml", tmp_path / "out"
    output = '[[output]]\nname = "docs"\nsink = "files"\npath = "{}"\n'
    file.write_text(output.format(out))
    with Process(log.engine, out, "--config", str(file), out=False) as process:
        log.write(1, key="idu=1")
        until(finished(log, 1), "a row before reloading")
        file.write_text(output.format(file / "below"))
        log.write(2, key="idu=2")
        process.tell(signal.SIGHUP)
        assert "is a file, and a folder must be there" in process.wait_for("reload_failed")["error"]
        until(finished(log, 2), "a row after going back")
        assert process.stop() == 0
    assert list(published(out).values()) == [["1"], ["2"]]


def test_a_fatal_answer_ends_it_with_its_own_exit_code(log: LogTable, tmp_path: Path) -> None:
    for number in (1, 2):
        log.write(number, key=f"idu={number}")
    with ScriptedServer([answer(FATAL)]) as server:
        config = tmp_path / "eventlog.toml"
        config.write_text(f'[[output]]\nsink = "http"\nurl = "http://127.0.0.1:{server.port}/"\n')
        with Process(log.engine, tmp_path / "out", "--config", str(config), program=WITHOUT_OUT) as process:
            assert process.end() == 69
        last = process.journal[-1]
    assert (last["action"], last["exit_code"], "othing more" in last["error"]) == ("fatal", 69, True)
    assert log.statuses() == {1: "F", 2: "N"}
    assert log.outcomes()[1][2] == "Closed for good."


def test_on_error_it_halts_if_that_is_wanted(log: LogTable, tmp_path: Path) -> None:
    log.write(1, event_type=9)
    with Process(log.engine, tmp_path / "out", on_error="halt") as process:
        assert process.end() == 65
        assert process.journal[-1].items() >= {"action": "fatal", "exit_code": 65}.items()
    assert log.statuses() == {1: "E"}


def test_it_can_be_watched(log: LogTable, tmp_path: Path) -> None:
    log.write(1)
    with Process(log.engine, tmp_path / "out", "--http", "127.0.0.1:0") as process:
        port = process.wait_for("watched_at")["port"]
        process.wait_for("published")
        log.run("UPDATE event_log SET event_time = '2999-01-01 00:00:00' WHERE record_id = 1")
        metrics = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        assert urlopen(f"http://127.0.0.1:{port}/ready").status == 200
    assert 'eventlog_rows_total{status="S"} 1.0\n' in metrics
    assert 'eventlog_state{state="publishing"} 1.0\n' in metrics


WITHOUT_OUT = "import sys; sys.argv.remove('--out'); sys.argv.pop(2)"
"""Takes the folder off the command line, so that the configuration's own output counts."""


def test_a_setting_that_does_nothing_is_said_once(log: LogTable, tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    out = f'sink = "files"\npath = "{tmp_path / "out"}"'
    file.write_text(f'[[output]]\n{out}\nformat = "messages"\nmessages.metadata_topic = "shapes"\n')
    with Process(log.engine, tmp_path / "out", "--config", str(file), out=False) as process:
        for number in (1, 2):
            log.write(number, key="idu=1")
            until(finished(log, number), "a row is published all the same")
        assert process.stop() == 0
        assert process.actions().count("setting_ignored") == 1
        assert process.wait_for("setting_ignored")["setting"] == "output.messages.metadata_topic"
        assert process.wait_for("setting_ignored")["level"] == "warning"
