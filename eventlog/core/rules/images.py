"""Image rows: a row of the log whose text is the whole row that changed.

| change | event_type | old_value | new_value |
| --- | --- | --- | --- |
| INSERT | 5 | NULL | image |
| UPDATE | 6 | image, or NULL where nobody noted it | image |
| DELETE | 4 | image | NULL |

An image is a JSON array of texts: the number of the definition under which it was written, then one
text or null for each column that the definition names. Any other reader of the log takes such rows for
what their types say: rows to be read back, and a delete. What a stream could not read stands in the
place of an image as `["?", why, …]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Final

import msgspec
from msgspec.structs import replace

from eventlog.core.model import ABSENT, Event, Kind, RowImage
from eventlog.core.rules.definitions import Definitions
from eventlog.core.schema import Catalog

BEGIN: Final = "["
"""What an image begins with."""
UNREAD: Final = "?"
"""What stands in the place of the number where a row could not be read."""
# Plain numbers, as in the rules: a look-up of a member costs as much as the rest of a comparison.
DELETE_ROW: Final = int(Kind.DELETE_ROW)
INSERT_ROW: Final = int(Kind.INSERT_ROW_BACK)
UPDATE_ROW: Final = int(Kind.UPDATE_ROW_BACK)
ROW_KINDS: Final = frozenset([DELETE_ROW, INSERT_ROW, UPDATE_ROW])
INSERT_FIELD: Final = int(Kind.INSERT_FIELD)
UPDATE_FIELD: Final = int(Kind.UPDATE_FIELD)
REPLACE_FIELD: Final = int(Kind.REPLACE_FIELD)

_decoder = msgspec.json.Decoder(list[str | None])
_encoder = msgspec.json.Encoder()


def encode_image(number: int, values: Iterable[str | None]) -> str:
    """Write an image of the definition with this number."""
    texts = [str(number), *values]
    try:
        return _encoder.encode(texts).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can carry
        return json.dumps(texts, separators=(",", ":"))


def encode_fault(why: str, values: Iterable[str | None]) -> str:
    """Explain an unreadable row, with the values it had."""
    return json.dumps([UNREAD, why, *values])


def decode_image(text: str) -> tuple[int, list[str | None]] | None:
    """Read the number and the values of an image; None where the text is none."""
    values = _decode(text) or [None]
    number = values.pop(0)
    if number is None or not (number.isascii() and number.isdigit()):
        return None
    return int(number), values


def decode_fault(text: str) -> str | None:
    """Read why a row could not be read; None where the text does not say so."""
    mark, *values = _decode(text) or [None]
    return values[0] if mark == UNREAD and values else None


def _decode(text: str) -> list[str | None] | None:
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError:
        # Not every database escapes the control characters of a value.
        try:
            return msgspec.convert(json.loads(text, strict=False), list[str | None])
        except (msgspec.ValidationError, ValueError, RecursionError):
            return None


def open_images(events: Sequence[Event], catalog: Catalog | None) -> Sequence[Event]:
    """Open the images among events: each becomes an event of types 1 to 4 with its rows.

    What only looks like an image gets a fault, in a table that ever logged images. Nothing but the
    row and the history of definitions decides: not how the table is tracked today.
    """
    opened: list[Event] | None = None
    opener = _Opener(None if catalog is None else catalog.former)
    for index, event in enumerate(events):
        if event.kind not in ROW_KINDS or event.column or event.image is not None:
            continue
        text = event.old if event.kind == DELETE_ROW else event.new
        if text is None or not text.startswith(BEGIN):
            continue
        if opened is None:
            opened = [*events]
        opened[index] = opener.open(event, text)
    return events if opened is None else opened


def find_opened_kind(kind: int, *, has_former: bool) -> int:
    """Find the kind of field rows an image row of this kind means."""
    if kind == DELETE_ROW:
        return DELETE_ROW
    if kind == INSERT_ROW:
        return INSERT_FIELD
    return UPDATE_FIELD if has_former else REPLACE_FIELD


class _Opener:
    """Opens images by the definitions that are known, if any."""

    def __init__(self, known: Definitions | None) -> None:
        self._known = known
        self._names: dict[tuple[str | None, int], tuple[str, ...] | None] = {}
        self._met: dict[tuple[str | None, str | None], tuple[int, tuple[str, ...]]] = {}
        """Numbers and columns of definitions, by a table's name and the number as images have it."""

    def open(self, event: Event, text: str) -> Event:
        """Decode the image of an event; leave it undecoded where it is to be read back, or note a fault."""
        after = _decode(text) or [None]
        met = self._met.get((event.table, after[0]))
        if met is None or len(after) != len(met[1]) + 1:
            return self._open_checked(event, text)
        # Nearly all: of a definition that had images before, on both sides.
        kind, (number, names) = event.kind, met
        if kind == UPDATE_ROW and event.old is not None:
            before = _decode(event.old) or [None]
            if before[0] != after[0] or len(before) != len(after):
                return self._open_checked(event, text)
            del before[0], after[0]
            image = RowImage(number=number, names=names, before=before, after=after)
            return replace(event, kind=UPDATE_FIELD, image=image)
        del after[0]
        if kind == DELETE_ROW:
            return replace(event, image=RowImage(number=number, names=names, before=after))
        opened = INSERT_FIELD if kind == INSERT_ROW else REPLACE_FIELD
        return replace(event, kind=opened, image=RowImage(number=number, names=names, after=after))

    def _open_checked(self, event: Event, text: str) -> Event:
        """Open an image of which nothing is known yet, and whatever is none."""
        kind, decoded = event.kind, decode_image(text)
        if decoded is None:
            if (why := decode_fault(text)) is not None:
                return replace(event, fault=why)
            # Values of such rows mean nothing in logs of others.
            has_images = self._known is not None and self._known.has_images(event.table)
            return replace(event, fault=_fault("is no image of a row", event)) if has_images else event
        number, values = decoded
        names = self._columns(event.table, number)
        if names is None:
            return self._unknown(event, number)
        if len(values) != len(names):
            problem = f"has {len(values)} values, and definition {number} has {len(names)} columns"
            return replace(event, fault=_fault(problem, event))
        self._met[event.table, str(number)] = number, names
        if kind == DELETE_ROW:
            return replace(event, image=RowImage(number=number, names=names, before=values))
        if kind == INSERT_ROW or event.old is None:
            opened = INSERT_FIELD if kind == INSERT_ROW else REPLACE_FIELD
            return replace(event, kind=opened, image=RowImage(number=number, names=names, after=values))
        former = decode_image(event.old)
        if former is not None and former[0] != number:
            # Of a stream, where both sides of a change need not have the same columns.
            own = self._columns(event.table, former[0])
            if own is not None and len(own) == len(former[1]):
                sides = dict(zip(own, former[1], strict=True)), dict(zip(names, values, strict=True))
                return replace(event, kind=UPDATE_FIELD, image=_align(number, *sides))
        elif former is not None and len(former[1]) == len(names):
            image = RowImage(number=number, names=names, before=former[1], after=values)
            return replace(event, kind=UPDATE_FIELD, image=image)
        return replace(event, fault=f"old_value is no image of definition {number}, and new_value is one.")

    def _columns(self, table: str | None, number: int) -> tuple[str, ...] | None:
        which = table, number
        # Rows of few tables come by the thousand.
        if which not in self._names:
            self._names[which] = None if self._known is None else self._known.image_columns(table, number)
        return self._names[which]

    def _unknown(self, event: Event, number: int) -> Event:
        known = self._known
        if known is not None and known.knows(event.table) and not known.has_images(event.table):
            return event
        problem = f"is an image by definition {number} of {event.table}, which is not known"
        return replace(event, fault=_fault(problem, event))


def _align(number: int, before: Mapping[str, str | None], after: Mapping[str, str | None]) -> RowImage:
    """Align two sides with different columns: missing ones are ABSENT."""
    names = (*after, *(name for name in before if name not in after))
    return RowImage(
        number=number,
        names=names,
        before=[before.get(name, ABSENT) for name in names],
        after=[after.get(name, ABSENT) for name in names],
    )


def _fault(problem: str, event: Event) -> str:
    column = "old_value" if event.kind == DELETE_ROW else "new_value"
    return f"{column} {problem}."


def field_events(event: Event) -> list[Event]:
    """Make the field rows of an image, all at its position."""
    image = event.image
    assert image is not None
    before, after = image.row(image.before), image.row(image.after)
    events = [replace(event, column=name, old=before.get(name), new=value, image=None) for name, value in after.items()]
    if event.kind != UPDATE_FIELD or before.keys() >= after.keys():
        return events
    # Nobody noted what stood there before.
    return [field if field.column in before else replace(field, kind=REPLACE_FIELD) for field in events]


def without_columns(event: Event, columns: Iterable[str | None]) -> Event | None:
    """Drop these columns from the event's image; return None where nothing is left."""
    image, left_out = event.image, {*columns}
    assert image is not None
    kept = [name not in left_out for name in image.names]
    if not any(kept):
        return None
    before, after = (None if row is None else list(compress(row, kept)) for row in (image.before, image.after))
    left = replace(image, names=tuple(compress(image.names, kept)), before=before, after=after)
    return replace(event, image=left)
