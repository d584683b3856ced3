"""The source `gbase`: the change stream of a GBase 8s or an Informix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from eventlog.core.plugins import SourceOrder, SourcePlugin
from eventlog.sources.gbase.settings import GBaseSettings

if TYPE_CHECKING:
    from eventlog.sources.stream.source import StreamReader


def _reader(order: SourceOrder) -> StreamReader:
    from eventlog.sources.gbase.source import gbase_reader

    return gbase_reader(order.settings, order.tables, report=order.report)


def _address(settings: GBaseSettings) -> str:
    from eventlog.core.secrets import masked

    return masked(settings.path or settings.server)


GBASE: Final = SourcePlugin(
    settings=GBaseSettings,
    build=_reader,
    marks=lambda settings: settings.marks,
    title="CDC stream",
    address=_address,
)
