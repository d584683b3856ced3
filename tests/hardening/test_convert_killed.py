"""A conversion that is killed leaves nothing that looks complete; run again, it gives the same bytes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from eventlog.convert import commit, local, pipeline
from eventlog.convert.commit import WORK
from eventlog.convert.settings import Conversion, FilesInput
from eventlog.core.errors import MachineError, SinkError
from tests.integration.publishing import until
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


def command(source: Path, out: Path, *more: str) -> list[str]:
    words = ["convert", str(source), "--out", str(out), "--engine", "local", "--part-events", "4000", *more]
    return [sys.executable, "-m", "eventlog", *words]


def begun(folder: Path) -> bool:
    """Whether the conversion has written something for itself."""
    return any(entry.stat().st_size for entry in folder.rglob("*.arrow")) if folder.exists() else False


def killed(source: Path, out: Path, jobs: str) -> int:
    """The group of a conversion that was killed in the middle."""
    process = subprocess.Popen(command(source, out, "--jobs", jobs), start_new_session=True)
    until(lambda: begun(out), "it is at work")
    process.kill()
    process.wait()
    return process.pid


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "jobs, more",
    [
        ("1", []),
        ("2", ["--resume"]),
        pytest.param("1", ["--resume"], marks=pytest.mark.long),
        pytest.param("2", [], marks=pytest.mark.long),
    ],
)
def test_killed_in_the_middle_and_run_again(
    source: Path, complete: dict[str, bytes], tmp_path: Path, jobs: str, more: list[str]
) -> None:
    out = tmp_path / "out"
    group = killed(source, out, jobs)
    assert [entry.name for entry in out.iterdir()] == [WORK]
    until(lambda: not group_lives(group), "workers end with it")
    again = subprocess.run(command(source, out, "--jobs", jobs, *more), check=False, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert files_of(out) == complete


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


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
        local.convert(ordered, jobs=1, resume=True)
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
        commit.Destination(out).occupied(overwrite=False),
        pytest.raises(SinkError, match="Another conversion is writing"),
    ):
        converted(source, out)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_disk_that_refuses_is_told_and_leaves_nothing(source: Path, tmp_path: Path, jobs: str) -> None:
    """A limit on the size of files stands for a disk that is full."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    out = tmp_path / "out"
    done = subprocess.run(
        command(source, out, "--jobs", jobs), check=False, capture_output=True, text=True, preexec_fn=limited
    )
    assert (done.returncode, "Traceback" in done.stderr) == (75, False), done.stderr
    assert "cannot be written: " in done.stderr
    assert [entry.name for entry in out.iterdir()] == [WORK]
