"""The source `linter`: the replication queue of a LINTER."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from eventlog.core.plugins import SourceOrder, SourcePlugin
from eventlog.sources.linter.settings import LinterSettings

if TYPE_CHECKING:
    from eventlog.sources.stream.source import StreamReader


def _reader(order: SourceOrder) -> StreamReader:
    """Marks of the first versions become those of later ones."""
    from eventlog.sources.linter.queue import open_session
    from eventlog.sources.linter.source import LinterReader, adopt_former_marks

    adopt_former_marks(order.marks)
    return LinterReader(open_session(order.url, order.settings), order.tables, order.settings, order.report)


LINTER: Final = SourcePlugin(
    settings=LinterSettings,
    build=_reader,
    marks=lambda settings: settings.marks,
    title="replication queue",
)
