"""A whole stream, from bytes in any cut to batches of images with their catalog. Does no I/O but what a spill does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from eventlog.core.errors import DamageError, SourceError
from eventlog.core.model import Image
from eventlog.core.schema import Catalog
from eventlog.core.seams import Batch
from eventlog.sources.gbase.frames import frames
from eventlog.sources.gbase.images import ImageMaker
from eventlog.sources.gbase.reader import Item, RecordReader
from eventlog.sources.gbase.settings import GbaseSettings
from eventlog.sources.stream.source import StreamPiece
from eventlog.sources.stream.transactions import SpillFactory

SIZE: Final = 1_000
"""Images of a batch, about: so few that the processor's cache still holds them when they are told."""


def images(
    chunks: Iterable[bytes],
    settings: GbaseSettings,
    known: Catalog | None = None,
    *,
    report: Callable[[str], None] = lambda _: None,
    spill: SpillFactory[Item] | None = None,
    size: int = SIZE,
) -> Iterator[Batch]:
    """Batches of about `size` images, in the order of the commits. Nothing is held longer than until its transaction ends.

    DamageError, with the offset, comes when everything before the damage was handed out; so does SourceError, when the
    server ended the session in the stream. What is odd and no damage is told to `report`.
    """
    records = RecordReader(settings, report, spill)
    maker = ImageMaker(settings, records, known)
    try:
        yield from _batches(_pieces(chunks, settings, records, maker), size)
        if records.transactions:
            report(f"The stream ends with {len(records.transactions)} open transaction(s), which are left out.")
    finally:
        records.transactions.close()


def _pieces(
    chunks: Iterable[bytes], settings: GbaseSettings, records: RecordReader, maker: ImageMaker
) -> Iterator[StreamPiece]:
    found_frames = frames(
        chunks, largest=settings.largest_record, skip_schemes=settings.skip_schemes, dirty=settings.dirty
    )
    for found in found_frames:
        for committed in records.read(found):
            yield from maker.pieces(committed)


def _batches(pieces: Iterator[StreamPiece], size: int) -> Iterator[Batch]:
    """Pieces of one catalog together; what was gathered is handed out before an error is raised."""
    gathered: list[Image] = []
    catalog: Catalog | None = None
    failure: DamageError | SourceError | None = None
    try:
        for piece in pieces:
            if gathered and (piece.catalog is not catalog or len(gathered) >= size):
                yield Batch(events=gathered, catalog=catalog)
                gathered = []
            gathered += piece.images
            catalog = piece.catalog
    except (DamageError, SourceError) as error:
        failure = error
    if gathered:
        yield Batch(events=gathered, catalog=catalog)
    if failure is not None:
        raise failure
