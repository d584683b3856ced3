"""The source `compare`: tables without triggers, compared with what was published of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from eventlog.core.plugins import SourceOrder, SourcePlugin
from eventlog.sources.compare.settings import CompareSettings

if TYPE_CHECKING:
    from eventlog.sources.stream.source import StreamReader


def _reader(order: SourceOrder) -> StreamReader:
    from eventlog.sources.compare.reader import open_reader

    url = order.reader or order.url
    return open_reader(url, order.captured, order.schema, order.settings, report=order.report)


COMPARE: Final = SourcePlugin(
    settings=CompareSettings,
    build=_reader,
    marks=lambda settings: settings.marks,
    title="comparison",
)
