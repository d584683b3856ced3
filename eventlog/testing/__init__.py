"""For tests of those who use eventlog, as a plug-in of pytest: a log, tracked tables and a
publisher on a throw-away database.

    pytest_plugins = ["eventlog.testing"]

brings the fixtures `eventlog_database` and `eventlog_capture`. Whoever has a database for tests
overrides the first one. Who writes a sink, a format or a source inherits what it must do:
SinkSuite, FormatSuite, SourceSuite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import from_settings
from eventlog.core.errors import UsageError
from eventlog.daemon.publisher import Publisher
from eventlog.tracked.options import Style, TriggerOptions

# Before the import: pytest rewrites the asserts only of what is not loaded yet.
pytest.register_assert_rewrite("eventlog.testing.suites")

from eventlog.testing.suites import (  # noqa: E402  # its assertions are to be rewritten
    PEOPLE,
    FormatSuite,
    SinkSuite,
    SinkTarget,
    SourceStream,
    SourceSuite,
    changes,
    document,
    tenure,
)

__all__ = [
    "PEOPLE",
    "Capture",
    "FormatSuite",
    "SinkSuite",
    "SinkTarget",
    "SourceStream",
    "SourceSuite",
    "changes",
    "document",
    "eventlog_capture",
    "eventlog_database",
    "tenure",
]


class Capture:
    """Captures changes of tables from now on.

    `folder` takes what is published, and must be empty or not there.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        *tables: str,
        events: str = "row-back",
        **output: Any,
    ) -> None:
        if engine.url.database in (None, "", ":memory:"):
            raise UsageError(
                f"A publisher has connections of its own, and {engine.url} is there for one.",
                hint="Take a file, as in sqlite:///app.db.",
            )
        install(engine)
        track(engine, tables, TriggerOptions(style=Style(events)))
        self._folder = folder
        self._shown: set[Path] = set()
        # `str` of an address has *** in the place of the password.
        url = engine.url.render_as_string(hide_password=False)
        settings = {
            "source": {"url": url},
            # A test changes rows as the user that the publisher is.
            "publisher": {"allow_loopback": True},
            "output": [{"sink": "files", "path": str(folder), **output}],
        }
        self._config = from_settings(settings, {}, origin="eventlog.testing")

    def published(self) -> list[str]:
        """Publishes what waits; the documents that are new, in their order."""
        with Publisher(self._config) as publisher:
            for _ in publisher.rounds(until_empty=True):
                pass
        new = sorted(set(self._documents()) - self._shown)
        self._shown.update(new)
        return [file.read_text(encoding="utf-8") for file in new]

    def _documents(self) -> Iterator[Path]:
        """Yield the documents; the publisher's own files are hidden."""
        for file in self._folder.rglob("*"):
            hidden = any(part.startswith(".") for part in file.relative_to(self._folder).parts)
            if file.is_file() and not hidden:
                yield file


@pytest.fixture
def eventlog_database(tmp_path: Path) -> Iterator[Engine]:
    """Make a new SQLite database for the test."""
    engine = create_engine(f"sqlite:///{tmp_path / 'app.db'}")
    yield engine
    engine.dispose()


@pytest.fixture
def eventlog_capture(eventlog_database: Engine, tmp_path: Path) -> Callable[..., Capture]:
    """Makes a log on the database and the triggers of the tables that it is called with.

    `events` says how a change is logged, as with `eventlog track`; other names are settings of the
    output, such as `format="messages"`.
    """

    def capture(*tables: str, **settings: Any) -> Capture:
        return Capture(eventlog_database, tmp_path / "published", *tables, **settings)

    return capture
