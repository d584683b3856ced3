"""Documents that are staged: on the disk under names that nobody looks at, until their turn comes or they are not wanted."""

from __future__ import annotations

import errno
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from eventlog.core.errors import SinkError
from eventlog.core.model import Change, Document, Op, RowId
from eventlog.delivery.output import Delivery, Output, Piece, Strictness
from eventlog.sinks.files import GROUP_DOCUMENTS, FileSink
from eventlog.sources.notes import Progress
from tests.support.memory import OneEach
from tests.support.sinks import opened


def documents(*numbers: int) -> list[Document]:
    return [Document(id=f"{number:04}", body=b"<nds/>", covers={}) for number in numbers]


def change(number: int) -> Change:
    return Change(row=RowId(None, "usr", f"idu={number}"), op=Op.DELETE, positions=((number,),))


def shown(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))


def hidden(folder: Path) -> int:
    return sum(entry.name.startswith(".") for entry in folder.iterdir())


@pytest.fixture
def sink(tmp_path: Path) -> FileSink:
    return opened(FileSink(tmp_path, ".xml"))


def test_nobody_sees_what_is_staged_before_it_is_written(sink: FileSink, tmp_path: Path) -> None:
    sink.stage(documents(1, 2))
    sink.stage(documents(3))
    assert shown(tmp_path) == []
    assert sink.last() == ""
    sink.write(documents(1, 2))
    assert shown(tmp_path) == ["0001.xml", "0002.xml"]
    sink.write(documents(3))
    assert (shown(tmp_path), hidden(tmp_path)) == (["0001.xml", "0002.xml", "0003.xml"], 0)


def test_staging_twice_writes_once(sink: FileSink, tmp_path: Path) -> None:
    sink.stage(documents(1))
    sink.stage(documents(1))
    sink.write(documents(1))
    sink.close()
    assert (shown(tmp_path), hidden(tmp_path)) == (["0001.xml"], 0)


def test_what_is_not_wanted_after_all_leaves_nothing_behind(sink: FileSink, tmp_path: Path) -> None:
    sink.stage(documents(1))
    sink.stage(documents(2))
    sink.write(documents(2))
    sink.stage(documents(3))
    sink.stage(documents(4))
    sink.write(documents(5))
    assert (shown(tmp_path), hidden(tmp_path)) == (["0002.xml", "0005.xml"], 0)
    sink.stage(documents(6))
    sink.close()
    assert (shown(tmp_path), hidden(tmp_path)) == (["0002.xml", "0005.xml"], 0)


def test_more_than_are_flushed_together_are_not_staged(sink: FileSink, tmp_path: Path) -> None:
    sink.stage(documents(*range(GROUP_DOCUMENTS + 1)))
    assert hidden(tmp_path) == 0


def test_one_thread_stages_while_another_writes(sink: FileSink, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)
    groups = [documents(number) for number in range(400)]
    for group in groups[:100]:
        sink.stage(group)
    with ThreadPoolExecutor(1) as beside:
        writing = beside.submit(lambda: [sink.write(group) for group in groups])
        for group in groups[100:]:
            sink.stage(group)
        writing.result()
    sink.close()
    assert (len(shown(tmp_path)), hidden(tmp_path)) == (400, 0)


def test_what_went_wrong_meanwhile_is_said_when_they_are_written(
    sink: FileSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        sink.stage(documents(1))
        with pytest.raises(SinkError, match=r"[Nn]o space left"):
            sink.write(documents(1))
    assert list(tmp_path.iterdir()) == []
    sink.write(documents(1))
    assert shown(tmp_path) == ["0001.xml"]


def test_a_delivery_that_is_made_ahead_stages_what_it_will_hand_over(sink: FileSink, tmp_path: Path) -> None:
    pieces = [Piece(changes=[change(1), change(2)])]
    delivery = Delivery(Output(format=OneEach(), sink=sink), pieces, Progress(), Strictness())
    delivery.stage()
    delivery.encode(None)
    delivery.stage()
    assert shown(tmp_path) == []
    delivery.run(None, lambda: None, lambda: None)
    assert len(shown(tmp_path)) == 2
    sink.close()
    assert hidden(tmp_path) == 0


def test_what_was_hidden_in_a_folder_that_was_away_is_removed_once_it_is_there_again(tmp_path: Path) -> None:
    real, folder = tmp_path / "real", tmp_path / "out"
    real.mkdir()
    folder.symlink_to(real)
    sink = opened(FileSink(folder, ".xml"))
    sink.stage(documents(1))
    sink.stage(documents(2))
    sink._staged[-1].parts.result()
    (tmp_path / "file").touch()
    folder.unlink()
    folder.symlink_to(tmp_path / "file")
    with pytest.raises(SinkError, match="cannot be written"):
        sink.write(documents(1))
    assert hidden(real) == 2
    folder.unlink()
    folder.symlink_to(real)
    sink.write(documents(1))
    assert (shown(real), hidden(real)) == (["0001.xml"], 0)
