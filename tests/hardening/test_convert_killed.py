"""A conversion that is killed leaves nothing that looks complete; run again, it gives the same bytes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from eventlog.convert import commit, local, pipeline
from eventlog.convert.commit import WORK
from eventlog.convert.settings import Conversion, FilesInput
from eventlog.core.errors import MachineError, SinkError, UsageError
from eventlog.durable_files import hide_files
from tests.support.converting import converted, files_of, log_row, write_parquet

CHANGES = 12_000


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [log_row(number, table_key=f"idu={number}") for number in range(CHANGES)]
    return write_parquet(tmp_path_factory.mktemp("source") / "log.parquet", rows)


@pytest.fixture(scope="module")
def complete(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("complete") / "out"
    converted(source, folder, part_events=4_000)
    return files_of(folder)


def command(source: Path, out: Path, engine: str = "local") -> list[str]:
    words = ["convert", str(source), "--out", str(out), "--engine", engine, "--part-events", "4000"]
    return [sys.executable, "-m", "eventlog", *words]


def begun(folder: Path) -> bool:
    """Whether the conversion has written something for itself."""
    return any(entry.stat().st_size for entry in folder.rglob("*.arrow")) if folder.exists() else False


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "jobs",
    ["1", "2"],
)
def test_killed_in_the_middle_and_run_again(
    source: Path, complete: dict[str, bytes], tmp_path: Path, jobs: str
) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(command(source, out, f"local[{jobs}]"))
    until = time.monotonic() + 60
    while not begun(out) and time.monotonic() < until:
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert [entry.name for entry in out.iterdir()] == [WORK]
    again = subprocess.run(command(source, out, f"local[{jobs}]"), check=False, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert files_of(out) == complete


def test_workers_end_with_the_conversion_that_is_killed(source: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(command(source, tmp_path / "out", "local[2]"), start_new_session=True)
    until = time.monotonic() + 60
    while not begun(tmp_path / "out") and time.monotonic() < until:
        time.sleep(0.005)
    process.kill()
    process.wait()
    while time.monotonic() < until and group_lives(process.pid):
        time.sleep(0.05)
    assert not group_lives(process.pid)


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def after_parts_have_their_names(flushed: Path) -> None:
    if (flushed / "part-00000.xml").exists():
        raise KeyboardInterrupt


def after_the_end_is_hidden(target: Path, content: bytes) -> None:
    hide_files([(target, content)])
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "function, killed, left",
    [
        ("flush", after_parts_have_their_names, "part-00000.xml"),
        ("write_file", after_the_end_is_hidden, ".eventlog-*.part"),
    ],
)
def test_killed_while_its_end_is_written_and_run_again(
    source: Path,
    complete: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    killed: Callable[..., None],
    left: str,
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(commit, function, killed)
        with pytest.raises(KeyboardInterrupt):
            converted(source, out, part_events=4_000)
    assert list(out.glob(left))
    assert not (out / "_SUCCESS").exists()
    converted(source, out, part_events=4_000)
    assert files_of(out) == complete
    assert not list(out.glob(".eventlog-*"))


def test_who_resumes_does_not_do_again_what_is_done(
    source: Path, complete: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    ordered = Conversion(input=FilesInput(places=(str(source),)), destination=out, part_events=4_000)

    def fails(*_: object) -> None:
        raise SinkError("The disk is full.")

    def forbidden(*_: object) -> None:
        raise AssertionError("this was done before")

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "produce", fails)
        with pytest.raises(SinkError):
            local.convert(ordered, jobs=1)
    with monkeypatch.context() as patch:
        patch.setattr(local, "scatter", forbidden)
        patch.setattr(local, "decide", forbidden)
        local.convert(ordered, jobs=1)
    assert files_of(out) == complete


def test_a_killed_worker_is_told_and_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "decide", end_this_process)
    with pytest.raises(MachineError, match="A worker process was killed"):
        converted(source, tmp_path / "out", jobs=2)
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == [WORK]


def end_this_process(_task: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_two_conversions_do_not_write_to_one_folder(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        commit.Destination(out).occupy(overwrite=False),
        pytest.raises(SinkError, match="Another conversion is writing"),
    ):
        converted(source, out)


def test_overwriting_takes_former_output_away_and_nothing_else(
    source: Path, complete: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    ordered = Conversion(input=FilesInput(places=(str(source),)), destination=out, part_events=4_000)
    with pytest.raises(UsageError, match="is not empty"):
        local.convert(ordered, jobs=1)
    for part_events in (2_000, 4_000):
        changed = Conversion(input=ordered.input, destination=out, part_events=part_events, overwrite=True)
        local.convert(changed, jobs=1)
    assert files_of(out) == complete | {"notes.txt": b"mine"}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_disk_that_refuses_is_told_and_leaves_nothing(source: Path, tmp_path: Path, jobs: str) -> None:
    """A limit on the size of files stands for a disk that is full."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    out = tmp_path / "out"
    done = subprocess.run(
        command(source, out, f"local[{jobs}]"), check=False, capture_output=True, text=True, preexec_fn=limited
    )
    assert (done.returncode, "Traceback" in done.stderr) == (75, False), done.stderr
    assert "cannot be written: " in done.stderr
    assert [entry.name for entry in out.iterdir()] == [WORK]
