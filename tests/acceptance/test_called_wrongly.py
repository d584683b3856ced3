"""What the command says when it was called wrongly, or what it writes to will not take it: a sentence and a code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.command import eventlog, expect_refused, ok

FULL = Path("/dev/full")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["track"], "eventlog: Missing argument 'TABLES...'. See `eventlog track --help`."),
        (
            ["decode", "nothing"],
            "eventlog: nothing is not a command. There are gbase, linter, messages. See `eventlog decode --help`.",
        ),
        (["decode", "gbasse"], "eventlog: gbasse is not a command. Did you mean gbase? See `eventlog decode --help`."),
        (["completion"], "Choose from: bash, zsh, fish. See `eventlog completion --help`."),
        (["status", "--jason"], "Did you mean '--json'? See `eventlog status --help`."),
    ],
)
def test_a_wrong_call_is_told_in_two_sentences(arguments: list[str], said: str) -> None:
    done = eventlog(*arguments)
    assert done.returncode == 64
    assert done.stdout == ""
    assert done.stderr.strip().endswith(said)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["--debug", "status"], ["status", "--debug"]])
def test_a_traceback_can_be_asked_for_in_front_and_behind(arguments: list[str], tmp_path: Path) -> None:
    done = eventlog(*arguments, cwd=tmp_path)
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("eventlog: No database is named.")
    assert done.returncode == 78, "the code says whose fault it was, with a traceback too"


@pytest.mark.skipif(not FULL.exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize("command", ["rules", "--version", "completion bash"])
def test_a_full_disk_is_no_fault_of_ours(command: str) -> None:
    """Also where Python holds back what is printed, as it does without PYTHONUNBUFFERED, and tries it last of all."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    words = [sys.executable, "-m", "eventlog", *command.split()]
    with FULL.open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False, env=buffered, text=True)
    assert done.returncode == 75
    assert len(done.stderr.splitlines()) == 1
    assert "Standard output (/dev/full) cannot be written: No space left on device." in done.stderr
    assert "fault of eventlog" not in done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize(
    "arguments", ["emulate gbase --rows 5 --out /dev/full", "init /dev/full --force --database sqlite:///a.db"]
)
def test_a_file_on_a_full_disk_is_named(arguments: str, tmp_path: Path) -> None:
    done = eventlog(*arguments.split(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        75,
        "eventlog: /dev/full cannot be used: No space left on device. Free some space and run it again.\n",
    )


def test_who_closed_standard_output_gets_the_code_of_the_command() -> None:
    words = f"{sys.executable} -m eventlog rules >&-"
    done = subprocess.run(words, shell=True, capture_output=True, text=True, check=False)  # noqa: S602  # only a shell closes it
    assert (done.returncode, done.stderr) == (0, "")


def test_who_stops_reading_gets_no_noise() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "eventlog", "rules"], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_terminal_without_a_letter_shows_its_number(tmp_path: Path) -> None:
    message = '{"data": {"id": "\N{SNOWMAN}"}, "beforeData": null, "headers": {"operation": "REFRESH"}}'
    (tmp_path / "messages.jsonl").write_text(message, encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}  # which Python asks for once, when it starts
    words = [sys.executable, "-m", "eventlog", "decode", "messages", "messages.jsonl"]
    done = subprocess.run(words, capture_output=True, check=True, cwd=tmp_path, env=environment)
    assert rb"\u2603" in done.stdout


def test_a_name_that_is_no_text_is_told(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'app.db'}"
    ok("install", "--database", database)
    expect_refused(
        64,
        "'n\\udce4' holds bytes that are no text in UTF-8.",
        "log",
        "--database",
        database,
        "--table",
        os.fsdecode(b"n\xe4"),
    )


def test_a_folder_that_was_removed_is_told(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = f"cd {gone} && rmdir {gone} && {sys.executable} -m eventlog demo"
    done = subprocess.run(words, shell=True, capture_output=True, text=True, check=False)  # noqa: S602  # only a shell stays there
    assert done.returncode == 69
    assert done.stderr == "eventlog: The folder of this shell is not there any more. Go to another one.\n"
