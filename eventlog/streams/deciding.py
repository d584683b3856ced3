"""Decides rows of a log that a stream was captured into: each has an image, which is whole."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter, itemgetter

from msgspec.structs import replace

from eventlog.config.build import options_of
from eventlog.config.settings import Config
from eventlog.core.model import Event, Image, Outcome, Position, Transaction
from eventlog.core.rules import Round
from eventlog.core.rules.definitions import DefinitionSpan
from eventlog.core.schema import Catalog
from eventlog.publisher.decide import Decider
from eventlog.publisher.encode import Part
from eventlog.sources.stream.captured import CapturedImages
from eventlog.sources.stream.images import tell
from eventlog.streams.images import ImageNumbers


def image_decider_of(config: Config, images: CapturedImages) -> ImageDecider:
    """The rules for a stream, which describes its tables itself."""
    # Without tables keys are taken as they are written, and those of a stream are written in one
    # way.
    return ImageDecider(Round(options=replace(options_of(config), future=False)), images)


class ImageDecider(Decider):
    """Asks the rules what the images of rows amount to, each by the tables of its time."""

    def __init__(self, round_: Round, log: CapturedImages) -> None:
        super().__init__(round_)
        self._log = log

    def of_rows(self, events: Sequence[Event], answers: Sequence[Outcome]) -> Sequence[Outcome]:
        rows = {self._log.image(event)[0].position: event.position for event in events}
        return ImageNumbers(rows=rows, transactions={}).of_rows(answers)

    def _parts(self, asked: Round, groups: Sequence[Sequence[Event]]) -> list[Part]:
        return _decided_parts(asked, groups, self._log)[0]


def parts_of_rows(
    asked: Round,
    groups: Sequence[Sequence[Event]],
    log: CapturedImages,
) -> list[Part]:
    """What groups of rows amount to, in the numbers of rows."""
    parts, numbers = _decided_parts(asked, groups, log)
    return [numbers.part(part) for part in parts]


def _decided_parts(
    asked: Round,
    groups: Sequence[Sequence[Event]],
    log: CapturedImages,
) -> tuple[list[Part], ImageNumbers]:
    """What groups of images amount to, each by itself and by the tables of its time."""
    rows: dict[Position, Position] = {}
    transactions: dict[int, int] = {}
    parts: list[Part] = []
    numbers = ImageNumbers(rows=rows, transactions=transactions)
    for group in groups:
        images: list[tuple[int, Image]] = []
        last: Transaction | None = None
        for event in sorted(group, key=attrgetter("position")):
            image, catalog = log.image(event)
            rows[image.position] = event.position
            # Rows of one transaction share it, and nearly always stand together.
            if event.transaction is not last:
                last = event.transaction
                if last is not None and image.transaction is not None:
                    transactions[last.mark] = image.transaction.mark
            images.append((catalog, image))
        for catalog, of_catalog in groupby(images, key=itemgetter(0)):
            parts.append(_part(asked, log, catalog, [image for _, image in of_catalog], numbers))
    if not parts:
        parts.append(_part(asked, log, 0, [], numbers))
    return parts, numbers


def _part(asked: Round, log: CapturedImages, number: int, images: Sequence[Image], numbers: ImageNumbers) -> Part:
    catalog = log.catalogs.find(number) if number else Catalog()
    decision = tell(images, catalog, asked.options)
    return Part(decision=decision, span=DefinitionSpan(catalog=catalog), numbers=numbers)
