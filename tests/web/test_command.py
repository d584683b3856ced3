"""`eventlog web`, and the page of `eventlog run --http`, as processes: they say where they are, answer, and end when asked."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from eventlog.cli.main import exit_code
from eventlog.web.server import PageServer
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import until, url_of
from tests.web.visiting import buttons


@contextmanager
def running(log: LogTable, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command until the block ends, which it must do well."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    command = [sys.executable, "-m", "eventlog", *arguments, "--database", str(log.engine.url)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=kept)
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=300) == 0
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str], pattern: str) -> str:
    """What the process says on standard error, as far as the pattern catches it."""
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(pattern, line)
        if found:
            return found[1]
    raise AssertionError(f"it never said {pattern}")


def asked(url: str) -> str:
    with urlopen(url, timeout=30) as answer:  # noqa: S310 - the address is this test's own
        body: bytes = answer.read()
        return body.decode()


def test_the_page_by_itself_reads_its_configuration_again_and_stays_read_only(log: LogTable, tmp_path: Path) -> None:
    file = tmp_path / "page.toml"
    output = '[[output]]\nsink = "files"\npath = "{}"\n'
    file.write_text(output.format("former"))
    arguments = ("--http", "127.0.0.1:0", "--read-only", "--log-format", "json")
    with running(log, "web", *arguments, "--config", str(file)) as process:
        url = said(process, r"The page is at (http://127\.0\.0\.1:\d+/)")
        until(lambda: "/former</bdi>" in asked(url), "the output is shown")
        assert json.loads(asked(f"{url}health")) == {"state": "watching"}
        file.write_text("[web]\ntoken = 'short'\n")
        process.send_signal(signal.SIGHUP)
        assert "web.token" in said(process, r'"reload_failed","error":"([^"]+)"')
        file.write_text(output.format("latter"))
        for _ in range(100):  # also while another one writes a line of the log
            process.send_signal(signal.SIGHUP)
            time.sleep(0.002)
        until(lambda: "/latter</bdi>" in asked(url), "the new output is shown")
        assert buttons(asked(f"{url}rows/3")) == []


def test_where_everybody_could_look_there_are_figures_and_no_page(log: LogTable, tmp_path: Path) -> None:
    everywhere = ".".join("0000")
    arguments = ("run", "--http", f"{everywhere}:0", "--out", str(tmp_path / "out"), "--log-format", "json")
    with running(log, *arguments) as process:
        assert "web.token" in said(process, r'"page_off","why":"([^"]+)"')
        port = said(process, r'"watched_at","port":(\d+)')
        assert "eventlog_state" in asked(f"http://127.0.0.1:{port}/metrics")
        with pytest.raises(OSError, match="404"):
            asked(f"http://127.0.0.1:{port}/")
        said(process, r'"(started)"')  # from then on it listens to signals


def test_into_a_pipe_the_page_speaks_to_people_too(log: LogTable) -> None:
    with running(log, "web", "--port", "0") as process:
        said(process, r"(The page is at)")
        process.send_signal(signal.SIGHUP)
        line = said(process, r"(.*reload.*)")
    assert "{" not in line


@pytest.mark.parametrize("command", [("web", "--port", "0"), ("run", "--once")])
def test_both_work_where_standard_error_was_closed(
    log: LogTable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
) -> None:
    monkeypatch.setattr(PageServer, "wait", lambda *_: None)
    config = tmp_path / "eventlog.toml"
    config.write_text(f'[[output]]\nsink = "files"\npath = "{tmp_path}/out"\nuse = 1\n')
    arguments = (*command, "--database", url_of(log.engine))
    monkeypatch.setattr(sys, "stderr", None)
    assert exit_code([*arguments, "--no-config"]) == 0
    assert exit_code([*arguments, "--config", str(config)]) == 78, "what cannot be told has a code"
    assert '"action"' not in capsys.readouterr().out


def test_a_log_that_is_not_there_is_said_before_anything_listens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["web", "--database", f"sqlite:///{tmp_path / 'none.db'}"]) == 78
    assert "There is no database file" in capsys.readouterr().err
