"""Where processes can have no locks together, because nobody lets this user write to /dev/shm, one does the work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from eventlog.convert import inferred, work
from eventlog.convert.inferred import catalog_of_files
from eventlog.convert.settings import FilesInput
from eventlog.convert.work import SharedTally, advance, processes_share_locks, workers


class Part(msgspec.Struct, frozen=True):
    """A task of this test."""

    name: str
    folder: str = ""


def done(part: Part) -> str:
    advance(2)
    return f"{part.name} by us"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the server says to who asks it for a lock there."""

    class Refusing:
        def Lock(self) -> None:  # noqa: N802  # as multiprocessing calls it
            raise PermissionError(13, "Permission denied")

    processes_share_locks.cache_clear()
    monkeypatch.setattr(work, "get_context", lambda _start: Refusing())
    yield
    processes_share_locks.cache_clear()


@pytest.mark.usefixtures("alone")
def test_tasks_are_done_here_and_counted(tmp_path: Path) -> None:
    tally = SharedTally()
    with workers(4, tmp_path, tally) as crew:
        assert crew.run(done, [Part("a"), Part("b")], str) == ["a by us", "b by us"]
    tally.add(3)
    assert tally.rows == 7


@pytest.mark.usefixtures("alone")
def test_the_names_of_tables_are_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inferred, "ProcessPoolExecutor", None)
    file = tmp_path / "log.jsonl"
    row = {"record_id": 1, "status": "N", "event_type": 5, "table_name": "usr", "table_key": "idu=1"}
    file.write_bytes(msgspec.json.encode({**row, "event_time": "2024-01-01T00:00:00", "perpetrator": "x"}))
    (table,) = catalog_of_files(FilesInput(places=(str(file),)))
    assert (table.name, table.key) == ("usr", ("idu",))
