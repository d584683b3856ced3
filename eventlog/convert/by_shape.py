"""Changes by the shapes of rows: most rows of a chunk never become events.

Objects whose rows all have a shape (`eventlog.xds.shapes`) get their text from Arrow's columns. The others
go through the rules with their values: those with something to be read back, images, keys that are not
spelled as the catalog does, values that XDS cannot carry, former definitions, several values of one column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.rows import OBJECT, object_text
from eventlog.convert.settings import Conversion, DatabaseRows
from eventlog.core.errors import DataError, ExpressionError
from eventlog.core.model import REFRESH, Outcome, Position
from eventlog.core.references import LooseReferences, find_loose_references
from eventlog.core.rules.screen import Identities, Ours, identities_of
from eventlog.xds.shapes import NEW, NO_PIECE, OLD, PLAIN_KINDS, LogRowShape, RowPiece, Shapes, shapes_of
from eventlog.xds.values import always, escape, not_digits
from eventlog.xds.write import XdsFormat

MOST_LEARNED_SHAPES: Final = 200
"""So many shapes are learned of one chunk: that takes about as long as all of its rows by the rules."""
MOST_BYTES: Final = 100_000_000
"""A chunk with more could have more text than Arrow's columns hold."""
SPECIAL: Final = r"[&<>\r\x00-\x08\x0b\x0c\x0e-\x1f\x{fffe}\x{ffff}]"
"""What `eventlog.xds.values.special` finds, for Arrow, whose texts have no halves of surrogate pairs."""
_plain_kinds: Final = pa.array(sorted(PLAIN_KINDS), pa.int64())
_no_text: Final = pa.scalar(None, pa.string())


class ShapedRows(Struct, frozen=True):
    """What became of a chunk: `columns` of changes, rows set aside, and the `rest`, which is not done."""

    columns: Mapping[str, pa.Array]
    others: Mapping[Position, Outcome]
    rest: pa.RecordBatch


class RowsByShape:
    """Writes the changes of rows by their shapes."""

    def __init__(self, conversion: Conversion, form: XdsFormat) -> None:
        options, catalog = conversion.options, conversion.catalog
        self._conversion = conversion
        self._form = form
        self._former = None if catalog is None else catalog.former
        self._references: LooseReferences = {}
        if catalog is not None and isinstance(conversion.read_back, DatabaseRows):
            self._references = find_loose_references(catalog)
        self._ours: Mapping[str | None, bool] | None = None
        if options.user and not options.allow_loopback:
            self._ours = Ours(options.user)

    # Not before there are rows enough for them.
    @cached_property
    def _shapes(self) -> Shapes:
        return shapes_of(self._conversion.catalog, self._conversion.options, self._form)

    @cached_property
    def _identities(self) -> Identities:
        return identities_of(self._conversion.catalog)

    def write(self, rows: pa.RecordBatch) -> ShapedRows:
        """Write the changes of whole objects, whose rows stand together and in order."""
        kinds = pc.is_in(rows.column("event_type"), value_set=_plain_kinds)
        # Little could be won where most is read back, or images.
        if 2 * (pc.sum(kinds).as_py() or 0) <= len(rows) or rows.nbytes > MOST_BYTES:
            return ShapedRows({}, {}, rows)
        kinds = self._without_special(rows, kinds)
        objects = _Objects(rows, self._identities)
        codes, pieces = self._shape(rows, kinds, objects)
        objects.leave(_by_code([piece is NO_PIECE for piece in pieces], codes))
        texts, unwritten = _write_pieces(rows, codes, pieces)
        if unwritten is not None:
            objects.leave(unwritten)
        # Rows that are set aside are in no change.
        apart = [piece.outcome is not None for piece in pieces]
        aside = _by_code(apart, codes) if any(apart) else None
        starts = objects.part(codes, pieces, aside, self._shapes)
        written = objects.written(aside)
        columns: dict[str, pa.Array] = {}
        if starts:
            kept = [_kept(column, written) for column in (rows.column("record_id"), objects.number, codes, texts)]
            columns = _write_changes(starts, kept, pieces, objects.names)
        others = {} if aside is None else _outcomes(rows, codes, pieces, objects.done(aside))
        return ShapedRows(columns, others, rows.filter(objects.left) if objects.has_left else rows.slice(0, 0))

    def _without_special(self, rows: pa.RecordBatch, plain: pa.Array) -> pa.Array:
        """Say which plain rows may have a shape also by their times and perpetrators."""
        if rows.column("event_time").null_count:
            plain = pc.and_(plain, rows.column("event_time").is_valid())
        people = rows.column("perpetrator").dictionary_encode()
        # A full load may be for one output alone; what the publisher's own user did is not published.
        apart = [
            person.startswith(REFRESH) or (self._ours is not None and self._ours[person])
            for person in people.dictionary.to_pylist()
        ]
        if any(apart):
            plain = pc.and_(plain, pc.fill_null(pc.invert(_by_code(apart, people.indices)), True))
        return plain

    def _shape(self, rows: pa.RecordBatch, kinds: pa.Array, objects: _Objects) -> tuple[pa.Array, list[RowPiece]]:
        """Find each row's piece; NO_PIECE where it goes through the rules."""
        old, new = rows.column("old_value"), rows.column("new_value")
        tables, columns = (_encode(rows.column(name)) for name in ("table_name", "column_name"))
        numbers = pc.if_else(kinds, rows.column("event_type"), 0)
        marks = (old.is_valid(), new.is_valid(), pc.fill_null(pc.equal(old, new), False))
        counts = len(tables.dictionary), len(columns.dictionary), 2, 2, 2
        # What a shape is made of is one number, so that only those that occur are looked at in Python.
        for part, count in zip((tables.indices, columns.indices, *marks), counts, strict=True):
            numbers = pc.add(pc.multiply(numbers, count), pc.cast(part, pa.int64()))
        encoded = numbers.dictionary_encode()
        table_names, column_names = tables.dictionary.to_pylist(), columns.dictionary.to_pylist()
        pieces: list[RowPiece] = []
        learned = 0
        for code, number in enumerate(encoded.dictionary.to_pylist()):
            parts = []
            for count in reversed(counts):
                number, part = divmod(number, count)  # noqa: PLW2901  # what is left of it
                parts.append(part)
            equal, has_new, has_old, column, table = parts
            shape = LogRowShape(
                number, table_names[table], column_names[column], bool(has_old), bool(has_new), equal=bool(equal)
            )
            piece = self._find(shape)
            if piece is None:
                example = objects.example(rows, encoded.indices, code) if learned < MOST_LEARNED_SHAPES else None
                piece = NO_PIECE
                if example is not None:
                    learned += 1
                    piece = self._shapes.learn(shape, example)
            pieces.append(piece)
        return encoded.indices, pieces

    def _find(self, shape: LogRowShape) -> RowPiece | None:
        """Look up the piece of a shape; None if it is to be learned."""
        if shape.kind not in PLAIN_KINDS or (self._former is not None and self._former.has_changed(shape.table)):
            return NO_PIECE
        if self._references and self._names_loosely(shape):
            return NO_PIECE
        return self._shapes.find(shape)

    def _names_loosely(self, shape: LogRowShape) -> bool:
        """Return True if only rows of another table say how the objects are called that such values name."""
        try:
            naming = self._identities.naming(shape.table)
            attribute = naming.attribute(shape.column)
        except DataError:
            return False
        table = naming.table
        return table is not None and attribute in self._references.get((table.schema, table.name), ())


def by_shape_of(conversion: Conversion) -> RowsByShape | None:
    """Return what writes a conversion's changes by shape; None where each goes through the rules."""
    form = conversion.format
    if not isinstance(form, XdsFormat) or form.who or conversion.who:
        return None
    # What a policy does may depend on values; a net effect does.
    if conversion.steps or conversion.gathers or conversion.options.coalesce:
        return None
    return RowsByShape(conversion, form)


class _Objects:
    """The objects of a chunk, by numbers from 0, and which of them are left to the rules."""

    def __init__(self, rows: pa.RecordBatch, identities: Identities) -> None:
        begins = _differs_before(rows.column(OBJECT))
        self.number = pc.subtract(pc.cumulative_sum(pc.cast(begins, pa.int32())), 1)
        starts = pc.indices_nonzero(begins)
        texts = [rows.column(name) for name in ("table_name", "table_key")]
        self.names: list[tuple[str, str]] = []
        """Of each object its table and its key, as results have it, and as XDS has the key."""
        self._left = set[int]()
        for place, (table, key) in enumerate(zip(*(column.take(starts).to_pylist() for column in texts), strict=True)):
            name = _name_object(identities, table, key)
            if name is None:
                self._left.add(place)
            self.names.append(name or ("", ""))
        # Two objects may have one number, and one object several spellings.
        spelled = pc.or_(*map(_differs_before, texts))
        self.leave(pc.and_not(spelled, begins))

    @property
    def has_left(self) -> bool:
        return bool(self._left)

    @property
    def left(self) -> pa.Array:
        """Say of each row whether its object is left to the rules."""
        return pc.is_in(self.number, value_set=pa.array(self._left, pa.int32()))

    def leave(self, rows: pa.Array) -> None:
        """Leave the objects of these rows to the rules."""
        if pc.any(rows).as_py():
            self._left.update(self.number.filter(rows).unique().to_pylist())

    def example(self, rows: pa.RecordBatch, codes: pa.Array, code: int) -> str | None:
        """Find the key of an object with such a row, among those that are not left."""
        place = pc.index(codes, pa.scalar(code, codes.type)).as_py()
        if self.number[place].as_py() in self._left:
            places = pc.indices_nonzero(pc.and_not(pc.equal(codes, code), self.left))
            if not len(places):
                return None
            place = places[0].as_py()
        key: str | None = rows.column("table_key")[place].as_py()
        return key

    def part(self, codes: pa.Array, pieces: Sequence[RowPiece], aside: pa.Array | None, shapes: Shapes) -> list[int]:
        """Find where changes begin among written rows; leave objects of which nobody can say it."""
        while True:
            written = self.written(aside)
            objects, codes_of_rows = (_kept(column, written).to_pylist() for column in (self.number, codes))
            starts, unsure = shapes.part(objects, codes_of_rows, pieces)
            if not unsure:
                return starts
            self._left |= unsure

    def written(self, aside: pa.Array | None) -> pa.Array | None:
        """Say which rows are in changes by shape; None for all of them."""
        if not self._left:
            return None if aside is None else pc.invert(aside)
        return pc.invert(self.left if aside is None else pc.or_(self.left, aside))

    def done(self, aside: pa.Array) -> pa.Array:
        """Say which rows are set aside here and not by the rules."""
        return pc.and_not(aside, self.left) if self._left else aside


def _name_object(identities: Identities, table: str | None, key: str | None) -> tuple[str, str] | None:
    """Name an object for results and for XDS; None where the rules must do so."""
    try:
        naming, row, identity = identities.identify(table, key, row_event=False)
        is_whole_row = naming.table is not None and naming.table.whole_row
        if row is not identity or naming.loose or naming.child is not None or is_whole_row:
            return None
        return object_text(row), escape(row.key)
    except (DataError, ExpressionError):
        return None


def _write_pieces(
    rows: pa.RecordBatch, codes: pa.Array, pieces: Sequence[RowPiece]
) -> tuple[pa.Array, pa.Array | None]:
    """Write the piece of each row; say also which rows have values that cannot be written, if there are any."""
    old = _Values(rows.column("old_value"), OLD, codes, pieces)
    new = _Values(rows.column("new_value"), NEW, codes, pieces)
    unwritten = [values.unwritten for values in (old, new) if values.unwritten is not None]
    before, between, behind = (_by_code(texts, codes) for texts in zip(*(piece.ready for piece in pieces), strict=True))
    texts = _join(before, old.escaped, between, new.escaped, behind)
    typed = [values.typed for values in (old, new) if values.typed is not None]
    if typed:
        texts, failed = _write_typed(texts, _any_of(typed), codes, (old.values, new.values), pieces)
        unwritten.append(failed)
    return texts, _any_of(unwritten) if unwritten else None


class _Values:
    """The values for one kind of hole, `escaped` as XML asks for it; some cannot be.

    `typed` are those that only the writer of their field can write: a moment, a reference, a number that is none.
    """

    def __init__(self, column: pa.Array, hole: str, codes: pa.Array, pieces: Sequence[RowPiece]) -> None:
        fields = [piece.field if hole in piece.holes else None for piece in pieces]
        if None in fields:
            column = pc.if_else(_by_code([field is not None for field in fields], codes), column, _no_text)
        self.values = self.escaped = column
        self.typed = self.unwritten = None
        is_special = pc.fill_null(pc.match_substring_regex(column, SPECIAL), False)
        ways = {field.odd for field in fields if field is not None}
        if always in ways or not_digits in ways:
            typed = _by_code([field is not None and field.odd is always for field in fields], codes)
            if not_digits in ways:
                numbers = _by_code([field is not None and field.odd is not_digits for field in fields], codes)
                typed = pc.or_(typed, pc.and_not(numbers, pc.fill_null(pc.ascii_is_decimal(column), False)))
            is_special = pc.and_not(is_special, typed)
            self.typed = typed
        if pc.any(is_special).as_py():
            texts = [_escape(value) for value in column.filter(is_special).to_pylist()]
            self.escaped = pc.replace_with_mask(column, is_special, pa.array(texts, pa.string()))
            if None in texts:
                self.unwritten = pc.and_(is_special, self.escaped.is_null())


def _escape(value: str) -> str | None:
    """Escape a value; None where XML cannot carry it."""
    with suppress(ExpressionError):
        return escape(value)
    return None


def _write_typed(
    texts: pa.Array, typed: pa.Array, codes: pa.Array, values: Iterable[pa.Array], pieces: Sequence[RowPiece]
) -> tuple[pa.Array, pa.Array]:
    """Write the pieces of rows by the writers of their fields; say also of which rows that failed."""
    written: list[str | None] = []
    for code, old, new in zip(*(column.filter(typed).to_pylist() for column in (codes, *values)), strict=True):
        text: str | None = None
        with suppress(ExpressionError):
            text = pieces[code].fill(old, new)
        written.append(text)
    texts = pc.replace_with_mask(texts, typed, pa.array(written, pa.string()))
    return texts, texts.is_null()


def _any_of(masks: Sequence[pa.Array]) -> pa.Array:
    return reduce(pc.or_, masks)


def _write_changes(
    starts: list[int], kept: Sequence[pa.Array], pieces: Sequence[RowPiece], names: Sequence[tuple[str, str]]
) -> dict[str, pa.Array]:
    """Write the changes that begin at these rows."""
    positions, objects, codes, texts = kept
    begin = pa.array([*starts, len(texts)], pa.int32())
    first = begin.slice(0, len(starts))
    lowest, highest = positions.take(first), positions.take(pc.subtract(begin.slice(1), 1))
    lowest_text = lowest.cast(pa.string())
    span = pc.binary_join_element_wise(lowest_text, highest.cast(pa.string()), "-")
    event_id = pc.if_else(pc.equal(lowest, highest), lowest_text, span)
    # All rows of a change have its operation.
    of_change = codes.take(first)
    frames = [piece.frame for piece in pieces]
    opening, to_key, after_key, closing = (
        _by_code(["" if frame is None else getattr(frame, name) for frame in frames], of_change)
        for name in ("opening", "to_key", "after_key", "closing")
    )
    object_names, keys = (_by_code(column, objects.take(first)) for column in zip(*names, strict=True))
    bodies = pc.binary_join(pa.ListArray.from_arrays(begin, texts), "")
    text = _join(opening, event_id, to_key, keys, after_key, bodies, closing)
    return {
        "position": highest,
        "text": text.cast(pa.large_string()),
        "route": pa.repeat(pa.scalar("", pa.string()), len(starts)),
        "object": object_names,
        "op": _by_code(["" if piece.op is None else piece.op.value for piece in pieces], of_change),
    }


def _outcomes(
    rows: pa.RecordBatch, codes: pa.Array, pieces: Sequence[RowPiece], done: pa.Array
) -> dict[Position, Outcome]:
    """Make the outcomes of rows that are set aside."""
    outcomes: dict[Position, Outcome] = {}
    for number, code in zip(
        *(column.filter(done).to_pylist() for column in (rows.column("record_id"), codes)), strict=True
    ):
        outcome = pieces[code].outcome
        assert outcome is not None
        outcomes[number,] = replace(outcome, position=(number,))
    return outcomes


def _differs_before(column: pa.Array) -> pa.Array:
    """Say of each row whether its value is another one than that of the row before; of the first it is."""
    others = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
    # NULL is like no other.
    return pa.concat_arrays([pa.array([True]), pc.fill_null(others, True)])


def _encode(texts: pa.Array) -> Any:
    """Encode texts; NULL is a text of its own."""
    return texts.dictionary_encode(null_encoding="encode")


def _by_code(values: Iterable[Any], codes: pa.Array) -> pa.Array:
    """Give each row the value of its code."""
    return pa.array(list(values)).take(codes)


def _kept(column: pa.Array, rows: pa.Array | None) -> pa.Array:
    return column if rows is None else column.filter(rows)


def _join(*texts: pa.Array) -> pa.Array:
    """Join the texts of each row; NULL is none."""
    return pc.binary_join_element_wise(*texts, "", null_handling="replace", null_replacement="")
