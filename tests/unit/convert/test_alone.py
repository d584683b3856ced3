"""Where processes can have no locks together, because nobody lets this user write to /dev/shm, one does the work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from eventlog.convert import work
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
