"""The source `gbase`: the change stream of a GBase 8s or an Informix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eventlog.core.errors import SourceError
from eventlog.core.plugins import Finding, SourceOrder, SourcePlugin
from eventlog.core.plural import count_words
from eventlog.sources.gbase.settings import GBaseSettings

if TYPE_CHECKING:
    from eventlog.sources.stream.source import StreamReader


def _reader(order: SourceOrder) -> StreamReader:
    from eventlog.sources.gbase.source import gbase_reader

    return gbase_reader(order.settings, order.tables, report=order.report)


def _address(settings: GBaseSettings) -> str:
    from eventlog.core.secrets import mask_secrets

    return mask_secrets(settings.path or settings.server)


def _findings(order: SourceOrder) -> Iterator[Finding]:
    """Yield whether the files are readable, or the server accepts our login; starts no capture."""
    from eventlog.sources.gbase.drivers import driver_of
    from eventlog.sources.gbase.files import files_of

    settings: GBaseSettings = order.settings
    if settings.path is None:
        driver_of(settings).close()
        yield Finding(message=f"{_address(settings)} lets us in")
        return
    try:
        files = files_of(Path(settings.path))
        for file in files:
            file.open("rb").close()
    except OSError as error:
        raise SourceError(f"{settings.path} cannot be read: {error.strerror}.") from error
    yield Finding(message=f"{settings.path}: {count_words(len(files), 'file')} can be read")


GBASE: Final = SourcePlugin(
    settings=GBaseSettings,
    build=_reader,
    marks=lambda settings: settings.marks,
    title="CDC stream",
    address=_address,
    check=_findings,
)
