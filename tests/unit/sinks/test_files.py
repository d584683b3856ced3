"""The files sink: names from ids, all or nothing, leftovers of a crash, and errors that say what to do."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import SinkError
from eventlog.core.model import Document
from eventlog.sinks.files import NAME_BYTES, FileSink, document_id, file_name
from tests.support.shares import met, shares
from tests.support.sinks import opened

identities = st.one_of(st.text(st.characters(codec=None)), st.text("aA.%~0/", max_size=6), st.text("é", min_size=60))


def document(identity: str, body: bytes = b"<nds/>") -> Document:
    return Document(id=identity, body=body, covers={})


@shares(whole=0.3, cut=0.05)
@given(identities)
def test_names_are_safe_and_lead_back_to_the_id(identity: str) -> None:
    name = file_name(identity)
    assert set(name) <= set("0123456789abcdefghijklmnopqrstuvwxyz._-%~")
    met(whole="~" not in name, cut="~" in name)
    assert 1 <= len(name) <= NAME_BYTES
    assert not name.startswith(".")
    assert document_id(name) == (None if "~" in name else identity)


@given(st.lists(identities, unique=True))
def test_different_ids_never_share_a_name(found: list[str]) -> None:
    assert len({file_name(identity).casefold() for identity in found}) == len(found)


@pytest.mark.parametrize("identity", ["../../etc/passwd", "/etc/passwd", "..", ".", "", "a\0b", "C:\\x", "é" * 300])
def test_no_id_leaves_the_folder(tmp_path: Path, identity: str) -> None:
    folder = tmp_path / "out"
    opened(FileSink(folder, ".xml")).commit("", [document(identity)])
    assert opened(FileSink(folder, ".xml")).path(identity).read_bytes() == b"<nds/>"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_an_id_too_long_for_a_name_is_still_known_after_a_restart(tmp_path: Path) -> None:
    opened(FileSink(tmp_path, ".xml")).commit("", [document("x" * 400), document("y" * 400)])
    assert opened(FileSink(tmp_path, ".xml")).last() == "y" * 400


def test_files_of_other_people_are_no_documents(tmp_path: Path) -> None:
    (tmp_path / "READ ME.xml").write_text("x")
    (tmp_path / "9.txt").write_text("x")
    (tmp_path / ".hidden.xml").write_text("x")
    sink = opened(FileSink(tmp_path, ".xml"))
    assert sink.last() == ""
    sink.commit("", [document("5")])
    assert opened(FileSink(tmp_path, ".xml")).last() == "5"


def test_what_others_have_hidden_goes_when_the_folder_is_opened(tmp_path: Path) -> None:
    for name in (".eventlog-4711-0.part", ".eventlog-0123456789abcdef-7.part", ".theirs.part"):
        (tmp_path / name).write_text("half")
    former = opened(FileSink(tmp_path, ".xml"))
    former.prepare("a", [document("1")])
    FileSink(tmp_path, ".xml").open(None)
    assert [entry.name for entry in tmp_path.iterdir()] == [".theirs.part"]


def test_what_cannot_be_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".eventlog-4711-0.part").write_text("half")

    def unlink(path: str) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), path)

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(SinkError, match="Operation not permitted"):
        FileSink(tmp_path, ".xml").open(None)


def failing(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Makes every fsync fail with this error."""

    def fsync(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("count", [1, 40])
def test_a_full_disk_leaves_nothing_behind_and_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    sink = opened(FileSink(tmp_path, ".xml"))
    failing(monkeypatch, errno.ENOSPC)
    with pytest.raises(SinkError, match=f"{tmp_path}.*[Nn]o space left") as caught:
        sink.commit("", [document(f"{number:03}") for number in range(count)])
    assert caught.value.may_pass
    assert list(tmp_path.iterdir()) == []
    assert sink.last() == ""


def test_a_folder_that_may_not_be_written_does_not_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = opened(FileSink(tmp_path, ".xml"))

    def refuse(path: Path, *_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SinkError, match="Permission denied") as caught:
        sink.commit("", [document("1")])
    assert not caught.value.may_pass


def test_every_file_and_then_the_folder_is_flushed_before_commit_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    really = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append("folder" if Path(f"/proc/self/fd/{descriptor}").resolve() == tmp_path.resolve() else "file")
        really(descriptor)

    sink = opened(FileSink(tmp_path, ".xml"))
    monkeypatch.setattr(os, "fsync", fsync)
    sink.commit("", [document(str(number)) for number in range(5)])
    assert flushed == ["file"] * 5 + ["folder"]
