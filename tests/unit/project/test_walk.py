"""How far somebody walks who follows one changed row from the log to its document and to its status."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from sqlalchemy import create_engine

import eventlog
from eventlog.daemon.publisher import Publisher
from tests.integration.publishing import config_of, published, site

PACKAGE = str(Path(eventlog.__file__).parent) + "/"
MOST_FILES = 32
"""The goal is 20. It may only become less: a new feature that every row passes takes the place of another file."""


@contextmanager
def files_entered() -> Iterator[set[str]]:
    """The files of the package in which a function is called in this thread."""
    found: set[str] = set()

    def entered(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.add(frame.f_code.co_filename.removeprefix(PACKAGE))

    before: Callable[..., object] | None = sys.getprofile()
    sys.setprofile(entered)
    try:
        yield found
    finally:
        sys.setprofile(before)


def test_an_updated_row_passes_few_files(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'log.db'}")
    log = site(engine)
    log.run("INSERT INTO usr VALUES (1, 'Jack', 'O''Neill')")
    with Publisher(config_of(engine, tmp_path / "out")) as publisher:
        log.write(1, event_type=6)
        publisher.run_once()  # what is opened and looked at once is no part of a row's walk
        log.write(2, event_type=6)
        with files_entered() as files:
            publisher.run_once()
    assert log.statuses() == {1: "S", 2: "S"}
    engine.dispose()
    assert sorted(published(tmp_path / "out").values()) == [["1"], ["2"]]
    assert "sources/log/source.py" in files
    assert "xds/write.py" in files
    files.discard("sql/limits.py")  # another session is opened while the lease is renewed in the first one
    assert len(files) <= MOST_FILES, sorted(files)
