"""Output that consists of folders: replaced whole or not at all, whenever a conversion is interrupted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventlog.convert import commit, local
from eventlog.convert.settings import Conversion, FilesInput, MessageFiles, TableFiles, Target
from eventlog.core.errors import UsageError
from eventlog.qlik.messages.settings import MessageSettings
from tests.support.converting import files_of, log_row, write_lines
from tests.support.strategies import CATALOG

ROWS = TableFiles()
MESSAGES = MessageFiles(settings=MessageSettings(topic="{table}"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "log.jsonl", [log_row(number, table_key=f"idu={number}") for number in range(1, 8)])


def run(source: Path, out: Path, target: Target, **chosen: Any) -> None:
    found = FilesInput(places=(str(source),))
    ordered = Conversion(input=found, destination=out, catalog=CATALOG, format=target, part_events=3, **chosen)
    local.convert(ordered, jobs=1)


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def killed_at(folder: Path) -> Callable[[Path], None]:
    """End the process when the folder's names are flushed to the disk, and not before."""
    return lambda path: killed() if path == folder else None


def test_the_folders_of_a_former_conversion_go_and_nothing_else(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(source, out, ROWS)
    run(source, tmp_path / "alone", MESSAGES)
    (out / "mine__ct").mkdir()
    (out / "mine__ct" / "part-00000.parquet").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        run(source, out, MESSAGES)
    run(source, out, MESSAGES, overwrite=True)
    assert files_of(out) == files_of(tmp_path / "alone") | {"mine__ct/part-00000.parquet": b"mine"}


@pytest.mark.parametrize("place", ["flush", "write_file", "_flush"])
@pytest.mark.parametrize("former", [None, ROWS, MESSAGES])
def test_an_interrupted_commit_is_made_good_by_the_next_run(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, former: Target | None
) -> None:
    out = tmp_path / "out"
    run(source, tmp_path / "alone", ROWS)
    if former is not None:
        run(source, out, former)
    with monkeypatch.context() as patch:
        patch.setattr(commit, place, killed_at(out) if place == "flush" else killed)
        with pytest.raises(KeyboardInterrupt):
            run(source, out, ROWS, overwrite=former is not None)
    assert former is not None or not (out / "_SUCCESS").exists()
    run(source, out, ROWS, overwrite=(out / "_SUCCESS").exists())
    assert files_of(out) == files_of(tmp_path / "alone")


def test_a_stranger_beside_an_interrupted_run_is_no_output(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / commit.WORK).mkdir(parents=True)
    (out / "usr__ct").mkdir()
    (out / "usr__ct" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        run(source, out, ROWS)
    for _ in range(2):
        with pytest.raises(UsageError, match=r"usr__ct .* no output of a conversion"):
            run(source, out, ROWS, overwrite=True)
    assert (out / "usr__ct" / "mine.txt").read_text() == "mine"
    (out / "usr__ct").rename(tmp_path / "away")
    run(source, out, ROWS, overwrite=True)
    assert (out / "_SUCCESS").exists()
