"""Documents that are prepared: on the disk under names that nobody looks at, until their turn comes or they are not wanted."""

from __future__ import annotations

import errno
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from eventlog.core.errors import SinkError
from eventlog.core.model import Document
from eventlog.sinks.files import FileSink
from tests.support.sinks import opened


def documents(*numbers: int) -> list[Document]:
    return [Document(id=f"{number:04}", body=b"<nds/>", covers={}) for number in numbers]


def shown(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))


def hidden(folder: Path) -> int:
    return sum(entry.name.endswith(".part") for entry in folder.iterdir())


@pytest.fixture
def sink(tmp_path: Path) -> FileSink:
    return opened(FileSink(tmp_path, ".xml"))


def test_nobody_sees_what_is_prepared_before_it_is_committed(sink: FileSink, tmp_path: Path) -> None:
    sink.prepare("a", documents(1, 2))
    sink.prepare("b", documents(3))
    assert shown(tmp_path) == []
    assert sink.last() == ""
    sink.commit("a", documents(1, 2))
    assert shown(tmp_path) == ["0001.xml", "0002.xml"]
    sink.commit("b", documents(3))
    assert (shown(tmp_path), hidden(tmp_path)) == (["0001.xml", "0002.xml", "0003.xml"], 0)


def test_a_plan_that_has_become_less_shows_what_it_is_now(sink: FileSink, tmp_path: Path) -> None:
    sink.prepare("a", documents(1, 2, 3))
    sink.commit("a", documents(1, 3))
    assert (shown(tmp_path), hidden(tmp_path)) == (["0001.xml", "0003.xml"], 0)


def test_one_thread_prepares_while_another_commits(
    sink: FileSink, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)
    groups = {str(number): documents(number) for number in range(400)}
    with ThreadPoolExecutor(1) as beside:
        committing = beside.submit(lambda: [sink.commit(plan, group) for plan, group in groups.items()])
        for plan, group in groups.items():
            sink.prepare(plan, group)
        committing.result()
    sink.close()
    assert (len(shown(tmp_path)), hidden(tmp_path)) == (400, 0)


def test_a_full_disk_leaves_nothing_behind(sink: FileSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(SinkError, match=r"[Nn]o space left"):
            sink.prepare("a", documents(1))
    assert list(tmp_path.iterdir()) == []
    sink.commit("a", documents(1))
    assert shown(tmp_path) == ["0001.xml"]


def test_what_was_hidden_in_a_folder_that_was_away_goes_once_it_is_there_again(tmp_path: Path) -> None:
    real, folder = tmp_path / "real", tmp_path / "out"
    real.mkdir()
    folder.symlink_to(real)
    sink = opened(FileSink(folder, ".xml"))
    sink.prepare("a", documents(1))
    sink.prepare("b", documents(2))
    (tmp_path / "file").touch()
    folder.unlink()
    folder.symlink_to(tmp_path / "file")
    with pytest.raises(SinkError, match="cannot be written"):
        sink.commit("a", documents(1))
    assert hidden(real) == 2
    folder.unlink()
    folder.symlink_to(real)
    assert sink.resolve("a").documents == frozenset()
    assert hidden(real) == 0
    sink.commit("a", documents(1))
    assert (shown(real), hidden(real)) == (["0001.xml"], 0)
