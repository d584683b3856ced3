"""Image rows: a row of the log whose text is the whole row that changed.

| change | event_type | old_value | new_value |
| --- | --- | --- | --- |
| INSERT | 5 | NULL | image |
| UPDATE | 6 | image, or NULL where nobody noted it | image |
| DELETE | 4 | image | NULL |

An image is a JSON array of texts: the number of the definition under which it was written, then one
text or null for each column that the definition names. Any other reader of the log takes such rows for
what their types say: rows to be read back, and a delete.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from eventlog.core.model import Event, Kind, RowImage
from eventlog.core.rules.definitions import Definitions
from eventlog.core.schema import Catalog

BEGIN: Final = "["
"""What an image begins with."""
ROW_KINDS: Final = frozenset(map(int, (Kind.DELETE_ROW, Kind.INSERT_ROW_BACK, Kind.UPDATE_ROW_BACK)))

_decoder = msgspec.json.Decoder(list[str | None])
_encoder = msgspec.json.Encoder()


def encode_image(number: int, values: Iterable[str | None]) -> str:
    """Write an image of the definition with this number."""
    return _encoder.encode([str(number), *values]).decode()


def decode_image(text: str) -> tuple[int, list[str | None]] | None:
    """Read the number and the values of an image; None where the text is none."""
    try:
        number, *values = _decoder.decode(text)
    except msgspec.DecodeError:
        # Not every database escapes the control characters of a value.
        try:
            number, *values = msgspec.convert(json.loads(text, strict=False), list[str | None])
        except (msgspec.ValidationError, ValueError, RecursionError):
            return None
    except ValueError:  # there is no number
        return None
    if number is None or not (number.isascii() and number.isdigit()):
        return None
    return int(number), values


def open_images(events: Sequence[Event], catalog: Catalog | None) -> Sequence[Event]:
    """Open the images among events: each becomes an event of types 1 to 4 with its rows.

    What only looks like an image gets a fault, in a table that ever logged images. Nothing but the
    row and the history of definitions decides: not how the table is tracked today.
    """
    opened: list[Event] | None = None
    for index, event in enumerate(events):
        if event.kind not in ROW_KINDS or (event.new is None and event.old is None) or event.column:
            continue
        text = event.old if event.kind == Kind.DELETE_ROW else event.new
        if text is None or not text.startswith(BEGIN):
            continue
        if opened is None:
            opened = [*events]
        opened[index] = _open(event, text, None if catalog is None else catalog.former)
    return events if opened is None else opened


def _open(event: Event, text: str, known: Definitions | None) -> Event:
    """The event with its image, as it is where it is to be read back, or with a fault."""
    has_images = known is not None and known.has_images(event.table)
    decoded = decode_image(text)
    if decoded is None:
        # Values of such rows mean nothing in logs of others.
        return replace(event, fault=_fault("is no image of a row", event)) if has_images else event
    number, values = decoded
    names = None if known is None else known.image_columns(event.table, number)
    if names is None:
        if known is not None and known.knows(event.table) and not has_images:
            return event
        problem = f"is an image by definition {number} of {event.table}, which is not known"
        return replace(event, fault=_fault(problem, event))
    row = _row(names, values)
    before: Mapping[str, str | None] | None = None
    if event.kind == Kind.UPDATE_ROW_BACK and event.old is not None:
        former = decode_image(event.old)
        before = None if former is None or former[0] != number else _row(names, former[1])
        if before is None:
            return replace(event, fault=f"old_value is no image of definition {number}, and new_value is one.")
    if row is None:
        problem = f"has {len(values)} values, and definition {number} has {len(names)} columns"
        return replace(event, fault=_fault(problem, event))
    if event.kind == Kind.DELETE_ROW:
        return replace(event, image=RowImage(number=number, before=row))
    kind = Kind.INSERT_FIELD
    if event.kind == Kind.UPDATE_ROW_BACK:
        kind = Kind.REPLACE_FIELD if before is None else Kind.UPDATE_FIELD
    return replace(event, kind=int(kind), image=RowImage(number=number, before=before, after=row))


def _row(names: Sequence[str], values: Sequence[str | None]) -> Mapping[str, str | None] | None:
    if len(names) != len(values):
        return None
    return dict(zip(names, values, strict=True))


def _fault(problem: str, event: Event) -> str:
    column = "old_value" if event.kind == Kind.DELETE_ROW else "new_value"
    return f"{column} {problem}."


def field_events(event: Event) -> list[Event]:
    """The field rows that an image stands for, all at its position."""
    image = event.image
    assert image is not None
    after = image.after or {}
    before = image.before or {}
    return [replace(event, column=name, old=before.get(name), new=value, image=None) for name, value in after.items()]


def without_columns(event: Event, columns: Iterable[str | None]) -> Event | None:
    """The event without what its image says of these columns; None where nothing is left."""
    image = event.image
    assert image is not None
    left_out = {*columns}
    rows = [
        None if row is None else {name: value for name, value in row.items() if name not in left_out}
        for row in (image.before, image.after)
    ]
    if not rows[1]:
        return None
    return replace(event, image=replace(image, before=rows[0], after=rows[1]))
