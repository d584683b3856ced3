"""The source `linter`: the replication queue of a LINTER."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Final

from eventlog.core.plugins import Finding, SourceOrder, SourcePlugin
from eventlog.sources.linter.settings import LinterSettings

if TYPE_CHECKING:
    from eventlog.sources.stream.source import StreamReader


def _reader(order: SourceOrder) -> StreamReader:
    from eventlog.sources.linter.queue import open_session
    from eventlog.sources.linter.source import LinterReader

    return LinterReader(open_session(order.url, order.settings), order.tables, order.settings, order.report)


def _findings(order: SourceOrder) -> Iterator[Finding]:
    """Yield whether the queue is readable and the tables have codecs."""
    from eventlog.sources.linter.queue import Queue, open_session
    from eventlog.sources.linter.tables import SourceTables

    SourceTables(order.tables, order.settings)
    with closing(open_session(order.url, order.settings)) as session:
        waiting = Queue(session, order.settings).endings(0, 1)
    message = f"{order.settings.table} can be read"
    if not waiting:
        message += ", and nothing waits in it"
    yield Finding(message=message)


LINTER: Final = SourcePlugin(
    settings=LinterSettings,
    build=_reader,
    marks=lambda settings: settings.marks,
    title="replication queue",
    check=_findings,
)
