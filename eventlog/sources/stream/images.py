"""From images to changes: a stream of committed transactions has each change once and whole, so
little is decided.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Sequence
from decimal import Decimal

from msgspec.structs import replace

from eventlog.core.errors import DataError
from eventlog.core.model import (
    ABSENT,
    Cell,
    Change,
    Edit,
    Image,
    Op,
    Outcome,
    Outcomes,
    Position,
    Reason,
    Row,
    RowId,
)
from eventlog.core.rules.lifetimes import SAME_IMAGES
from eventlog.core.rules.meaning import STATUS, Decision, Options
from eventlog.core.rules.screen import Ours
from eventlog.core.schema import Catalog, Table
from eventlog.core.tablekey import format_parts

_MODIFY, _TRUNCATE = Op.MODIFY, Op.TRUNCATE


def decide_images(images: Sequence[Image], catalog: Catalog | None, options: Options) -> Decision:
    """Decide on the images in order."""
    changes: list[Change] = []
    others: dict[Position, Outcome] = {}
    makers = _ChangeMakers(catalog)
    ours: Ours | None = None
    if options.user and not options.allow_loopback:
        ours = Ours(options.user)
    for image in images:
        if ours is not None and image.perpetrator is not None and ours[image.perpetrator]:
            others[image.position] = _end_image(image, Reason.LOOPBACK, None)
            continue
        try:
            change = makers[image.table](image)
        except DataError as error:
            others[image.position] = _end_image(image, Reason.INVALID, str(error))
            continue
        if image.op is _MODIFY and image.before == image.after:
            others[image.position] = _end_image(image, Reason.NOTHING, SAME_IMAGES)
        else:
            changes.append(change)
    return Decision(changes, Outcomes([image.position for image in images], others))


def part_image(image: Image, key: Sequence[str]) -> tuple[Image, ...]:
    """Split an image that changes the key into the end of one object and the beginning of another.

    The last number of their positions tells them apart; it is 0 in `image`.
    """
    before, after = image.before, image.after
    if image.op is not Op.MODIFY or before is None or after is None:
        return (image,)
    if all(before.get(name, ABSENT) == after.get(name, ABSENT) for name in key):
        return (image,)
    # The beginning stands behind the end, and before whatever comes next.
    position = (*image.position[:-1], 1)
    return (
        replace(image, op=Op.DELETE, after=None, last=False),
        replace(image, op=Op.ADD, before=None, position=position),
    )


def key_text(row: Row, key: Sequence[str], table: str) -> str:
    """Return the canonical key of a row; raise DataError if a key column is NULL or missing."""
    parts = []
    for name in key:
        value = row.get(name, ABSENT)
        # Not `isinstance`, for True is an int too.
        if type(value) is int and len(key) == 1:  # what nearly all keys are needs no quotes
            return f"{name}={value}"
        if value is None:
            raise DataError(f"The key column {name} of {table} is NULL, so the row cannot be named.")
        if value is ABSENT:
            raise DataError(f"The key column {name} of {table} was not captured, so the row cannot be named.")
        parts.append((name, _text(value)))
    return format_parts(parts)


def _text(value: Cell) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case Decimal():
            # `str` may write an exponent, which no database writes into a key.
            return format(value, "f")
        case bytes():
            return binascii.b2a_base64(value, newline=False).decode()
    return str(value)


def _change_maker(table: Table) -> Callable[[Image], Change]:
    """Makes the changes of a table's images."""
    schema, name, key = table.schema, table.name, table.key
    only = key[0] if len(key) == 1 else ""
    columns = _Columns(key)

    def change_of(image: Image) -> Change:
        if image.fault is not None:
            raise DataError(image.fault)
        row = image.before if image.after is None else image.after
        op = image.op
        # A TRUNCATE has no row, and means no object.
        number = row.get(only) if row is not None and op is not _TRUNCATE else None
        return Change(
            # What nearly all keys are needs no quotes.
            row=RowId(schema, name, f"{only}={number}" if type(number) is int else _key(image, table)),
            op=op,
            edits=columns.edits(image),
            positions=(image.position,),
            time=image.time,
            whole=True,
            transaction=image.transaction,
            stream=image.stream,
        )

    return change_of


def _key(image: Image, table: Table) -> str:
    """Return the canonical key; empty for the whole table, or if the key is unknown."""
    row = image.before if image.after is None else image.after
    if image.op is Op.TRUNCATE or not table.key:
        return ""
    if row is None:
        raise DataError(f"The change of {table.name} came without an image of its row.")
    return key_text(row, table.key, table.name)


class _Columns:
    """Columns of the last image, with those outside the key: nearly always the next one's too."""

    __slots__ = ("_key", "_names", "_outside_key")

    def __init__(self, key: tuple[str, ...]) -> None:
        self._key = key
        self._names: list[str] = []
        self._outside_key: list[str] = []

    def edits(self, image: Image) -> tuple[Edit, ...]:
        """Return an edit for each captured column outside the key."""
        before, after = image.before, image.after
        if after is None:
            old = before or {}
            return tuple([Edit(column=name, old=old[name]) for name in self._outside([*old])])
        names = [*after]
        outside = self._outside(names)
        if before is None:
            # Of an update nobody noted what stood there before: all former values go.
            reset = image.op is _MODIFY
            return tuple([Edit(column=name, new=after[name], reset=reset) for name in outside])
        if [*before] == names:  # what both images of a row nearly always have
            return tuple([Edit(column=name, old=before[name], new=after[name]) for name in outside])
        # Images with different columns: the one that has a column says all that is known of it, and
        # what was there before goes, whatever it was.
        edits = [
            Edit(column=name, old=before.get(name, ABSENT), new=after[name], reset=name not in before)
            for name in outside
        ]
        return (*edits, *[Edit(column=name, old=old) for name, old in before.items() if name not in after])

    def _outside(self, names: list[str]) -> list[str]:
        """Return the names outside the key."""
        if names != self._names:
            self._names, self._outside_key = names, [name for name in names if name not in self._key]
        return self._outside_key


def _end_image(image: Image, reason: Reason, note: str | None) -> Outcome:
    return Outcome(position=image.position, status=STATUS[reason], reason=reason, note=note)


class _ChangeMakers(dict[str, Callable[[Image], Change]]):
    """What makes changes of the images of each table, by the names that images have for them."""

    def __init__(self, catalog: Catalog | None) -> None:
        super().__init__()
        self._catalog = catalog

    def __missing__(self, name: str) -> Callable[[Image], Change]:
        match = self._catalog.find(name) if self._catalog is not None else None
        if match is None:
            raise DataError(f"{name} is not among the captured tables.")
        made = self[name] = _change_maker(match.table)
        return made
