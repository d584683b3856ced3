"""Shapes: what the rules and the writer make of a row of the log, whatever its values are.

The rules never look at a value: they see kinds, names, which values are NULL and which are equal. That is
a row's shape. The real rules and the real writer run once on a row of each shape, with symbols for its
values; what they wrote has holes, to be filled with the values of all rows like it.

Rows of one object are in one change, or begin another. That is learned of two of them in the same way, and
counts for all columns alike: a row belongs to a change if it may be with each of its rows. Nothing is
guessed: what does not come out as the texts of its rows, one after the other, has no shape, and goes through
the rules with its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import ExpressionError
from eventlog.core.model import Change, Event, Kind, Op, Outcome, Position, Reason
from eventlog.core.rules import Options, Round
from eventlog.core.schema import Catalog, Table
from eventlog.xds.values import Field, Fields, always
from eventlog.xds.write import Frame, Template, Templates, XdsFormat, element

ID, KEY, OLD, NEW, BOTH = SYMBOLS = "\U000f1d00\U000f1d01\U000f1d02\U000f1d03\U000f1d04"
"""Private characters of Unicode stand for what differs: number, key and values; BOTH is one value that came and went."""

PLAIN_KINDS: Final = frozenset(map(int, (Kind.INSERT_FIELD, Kind.UPDATE_FIELD, Kind.REPLACE_FIELD, Kind.DELETE_ROW)))
"""The kinds of rows that may have a shape: nothing is read back for them."""
MOST_KEPT_SHAPES: Final = 10_000
"""So many shapes are remembered: who writes into a log may name a million columns."""
COLUMN_BITS: Final = 64
"""Where the bits of columns begin; below them are those of likenesses, of which a table has fewer."""
ALL_LIKENESSES: Final = (1 << COLUMN_BITS) - 1
CLOSE: Final = "</value>"


class LogRowShape(Struct, frozen=True):
    """A row without its values."""

    kind: int
    table: str | None
    column: str | None
    old: bool
    new: bool
    """Whether there is a value."""
    equal: bool = False


class RowPiece(Struct, kw_only=True):
    """What a row of one shape becomes: an `outcome` that sets it aside, or a part of a change's text; neither
    where it must go through the rules with its values.

    `texts` stand round the `holes`, each of which takes a value as `field` writes it. `ready` are the same for
    values that are written as they stand: text before, between and behind the old and the new one.
    """

    outcome: Outcome | None = None
    op: Op | None = None
    frame: Frame | None = None
    field: Field | None = None
    texts: tuple[str, ...] = ("",)
    holes: str = ""
    event: Event | None = None
    of_table: TableShapes | None = None
    likeness: int = 0
    bits: int = 0
    """Its likeness and its column among those of its table."""

    @property
    def ready(self) -> tuple[str, str, str]:
        """Return the texts before, between and behind its values, with what opens and closes a value."""
        if self.field is None or not self.holes:
            return self.texts[0], "", ""
        before, *others = self.texts
        opening = self.field.opening
        if self.holes == OLD + NEW:
            return f"{before}{opening}", f"{CLOSE}{others[0]}{opening}", f"{CLOSE}{others[1]}"
        return f"{before}{opening}", "", f"{CLOSE}{others[0]}"

    def fill(self, old: str | None, new: str | None) -> str:
        """Write the piece with these values; raise ExpressionError where one of them cannot be written."""
        written = [self.texts[0]]
        for hole, text in zip(self.holes, self.texts[1:], strict=True):
            value = old if hole == OLD else new
            # A hole is where a value was, and only in pieces of a field.
            assert value is not None
            assert self.field is not None
            if self.field.odd(value) is None:
                written.append(f"{self.field.opening}{value}{CLOSE}{text}")
            else:
                written.append(f"{self.field.write(value)}{text}")
        return "".join(written)

    def frame_text(self, *texts: str) -> str:
        """Put texts into the frame of its operation, with symbols."""
        assert self.frame is not None
        frame = self.frame
        return f"{frame.opening}{ID}{frame.to_key}{KEY}{frame.after_key}{''.join(texts)}{frame.closing}"


NO_PIECE: Final = RowPiece()
"""Of rows that go through the rules with their values."""


class TableShapes(Struct):
    """What is known of one table's shapes: its likenesses, columns, and which rows may be in one change.

    Rows are alike if their shapes differ in nothing but the column.
    """

    likenesses: dict[tuple[LogRowShape, bool], int] = {}
    columns: dict[str, int] = {}
    joined: list[int] = []
    """Of each likeness the bits of those that may follow it in a change, with another column."""
    verdicts: dict[tuple[int, int, bool], bool | None] = {}
    """Whether the second of two rows is in the change of the first; None if nobody can say."""


class SymbolicFields(Fields):
    """Writes symbols in the place of values."""

    def __init__(self, fields: Fields) -> None:
        dict.__init__(self)
        self._real = fields

    def __missing__(self, name: str) -> Field:
        made = self[name] = replace(self._real[name], odd=always, write=str)
        return made


class SymbolicTemplates(Templates):
    """The templates of tables, with symbols in the place of values."""

    def __init__(self, templates: Templates) -> None:
        dict.__init__(self)
        self.indent = templates.indent
        self._real = templates

    def __missing__(self, key: tuple[str | None, str]) -> Template:
        real = self._real[key]
        made = self[key] = replace(real, fields=SymbolicFields(real.fields), forms=None)
        return made


class Shapes:
    """Learns shapes of one catalog's rows, and remembers what they become."""

    def __init__(self, tables: Catalog | None, options: Options, form: XdsFormat) -> None:
        # Without a reader: what is read back has no shape.
        self._round = Round(catalog=tables, options=options, by_object=True)
        self._templates = Templates(tables, form.settings())
        self._symbolic = SymbolicTemplates(self._templates)
        self._known: dict[LogRowShape, RowPiece] = {}
        self._tables: dict[str | None, TableShapes] = {}

    def find(self, shape: LogRowShape) -> RowPiece | None:
        """Look up what rows of a shape become; None if nobody has learned it."""
        return self._known.get(shape)

    def learn(self, shape: LogRowShape, key: str | None) -> RowPiece:
        """Learn what rows of a shape become. `key` is the key of one of them."""
        if len(self._known) >= MOST_KEPT_SHAPES:
            self._known.clear()
            self._tables.clear()
        piece = self._known[shape] = self._learn(shape, key)
        return piece

    def _learn(self, shape: LogRowShape, key: str | None) -> RowPiece:
        names = f"{shape.table}{shape.column}"
        if shape.kind not in PLAIN_KINDS or not {*SYMBOLS}.isdisjoint(names):
            return NO_PIECE
        # A delete that brings a row is an image.
        if shape.kind == Kind.DELETE_ROW and (shape.old or shape.new):
            return NO_PIECE
        old, new = (BOTH, BOTH) if shape.equal else (OLD, NEW)
        event = Event(
            position=(1,),
            kind=shape.kind,
            table=shape.table,
            key=key,
            column=shape.column,
            old=old if shape.old else None,
            new=new if shape.new else None,
            time="2026-01-01 00:00:00",
        )
        changes, outcomes, texts = self._run(event)
        if outcomes[0].reason is Reason.NOTHING:
            return RowPiece(outcome=outcomes[0])
        if len(texts) != 1 or len(changes[0].edits) > 1:
            return NO_PIECE
        return self._piece(shape, event, changes[0], texts[0][1])

    def _run(self, *events: Event) -> tuple[list[Change], Sequence[Outcome], list[tuple[Sequence[Position], str]]]:
        """Run the rules and the writer; return also what each change covers, and its text, if all could be written."""
        changes, outcomes = self._round.decide(events)
        texts: list[tuple[Sequence[Position], str]] = []
        with suppress(ExpressionError):
            texts = [(change.positions, self._write(change)) for change in changes]
        return changes, outcomes, texts

    def _piece(self, shape: LogRowShape, event: Event, change: Change, text: str) -> RowPiece:
        """Cut the text of a change of one row at its values."""
        template = self._templates[change.row.schema, change.row.table]
        piece = RowPiece(op=change.op, frame=template.frames[change.op], event=event)
        before, after = piece.frame_text(SYMBOLS).split(SYMBOLS)
        column = ""
        if change.edits:
            column = change.edits[0].column
            piece.field = template.fields[column]
        body = text[len(before) : len(text) - len(after)]
        # A value that came and went is one value, so both holes may be filled with either.
        holes = "".join([symbol for symbol in body if symbol in SYMBOLS])
        piece.holes = OLD + NEW if holes == BOTH + BOTH else holes.replace(BOTH, NEW)
        if f"{before}{body}{after}" != text or piece.holes not in ("", OLD, NEW, OLD + NEW):
            return NO_PIECE
        for symbol in holes:
            body = body.replace(symbol, ID)
        piece.texts = tuple(body.split(ID))
        self._place(shape, piece, column)
        return piece

    def _place(self, shape: LogRowShape, piece: RowPiece, column: str) -> None:
        """Number the piece among those of its table."""
        of_table = piece.of_table = self._tables.setdefault(shape.table, TableShapes())
        several = piece.field is not None and piece.field.several
        alike = replace(shape, column=None), several
        piece.likeness = of_table.likenesses.setdefault(alike, len(of_table.likenesses))
        if piece.likeness == len(of_table.joined):
            of_table.joined.append(0)
        place = of_table.columns.setdefault(column, len(of_table.columns))
        piece.bits = 1 << piece.likeness | 1 << COLUMN_BITS + place

    def _write(self, change: Change) -> str:
        return element(replace(change, row=replace(change.row, key=KEY)), change.edits, ID, self._symbolic)

    def part(
        self, objects: Sequence[int], codes: Sequence[int], pieces: Sequence[RowPiece]
    ) -> tuple[list[int], set[int]]:
        """Part rows of objects into changes; return where each begins, and the objects of which nobody can say it.

        `codes` say which of the `pieces` a row has; all of them are parts of changes.
        """
        starts: list[int] = []
        unsure = set[int]()
        bits = [piece.bits for piece in pieces]
        blocking = _blocking(pieces)
        former, blocked = -1, 0
        for place, (number, code) in enumerate(zip(objects, codes, strict=True)):
            if number == former:
                if not bits[code] & blocked:
                    blocked |= blocking[code]
                    continue
                change = [pieces[earlier] for earlier in codes[starts[-1] : place]]
                together = self._follows(change, pieces[code])
                if together is None:
                    unsure.add(number)
                if together:
                    # What was learned counts for the rows before, too.
                    blocking, blocked = _blocking(pieces), 0
                    for earlier in codes[starts[-1] : place + 1]:
                        blocked |= blocking[earlier]
                    continue
            former, blocked = number, blocking[code]
            starts.append(place)
        return starts, unsure

    def _follows(self, change: Iterable[RowPiece], piece: RowPiece) -> bool | None:
        """Return True if the row is in the change of the rows before it; None if nobody can say."""
        is_sure = True
        # First those of its column, which it mostly comes again for.
        column = piece.bits & ~ALL_LIKENESSES
        for earlier in sorted(change, key=lambda earlier: not earlier.bits & column):
            together = self._together(earlier, piece)
            if together is False:
                return False
            is_sure = is_sure and together is not None
        return True if is_sure else None

    def _together(self, earlier: RowPiece, later: RowPiece) -> bool | None:
        of_table = later.of_table
        assert of_table is not None
        same_column = bool((earlier.bits & later.bits) >> COLUMN_BITS)
        which = earlier.likeness, later.likeness, same_column
        if which not in of_table.verdicts:
            together = of_table.verdicts[which] = self._learn_together(earlier, later)
            if together and not same_column:
                of_table.joined[earlier.likeness] |= 1 << later.likeness
        return of_table.verdicts[which]

    def _learn_together(self, earlier: RowPiece, later: RowPiece) -> bool | None:
        """Run the rules and the writer on two rows of one object."""
        assert earlier.event is not None
        assert later.event is not None
        first = earlier.event
        _, outcomes, texts = self._run(first, replace(later.event, position=(2,), key=first.key))
        is_published = all(outcome.reason is Reason.PUBLISHED for outcome in outcomes)
        one, two = (_symbolic_text(piece) for piece in (earlier, later))
        if is_published and texts == [(((1,), (2,)), earlier.frame_text(one, two))]:
            return True
        if is_published and texts == [(((1,),), earlier.frame_text(one)), (((2,),), later.frame_text(two))]:
            return False
        return None


def _symbolic_text(piece: RowPiece) -> str:
    """Write a piece with the symbols that its row had."""
    event = piece.event
    assert event is not None
    written = [piece.texts[0]]
    for hole, text in zip(piece.holes, piece.texts[1:], strict=True):
        written += [str(event.old if hole == OLD else event.new), text]
    return "".join(written)


def _blocks(piece: RowPiece) -> int:
    """Return the bits of rows that may not follow in its change, as far as it is known: also those of its column."""
    if piece.of_table is None:
        return 0
    joined = piece.of_table.joined[piece.likeness]
    return ALL_LIKENESSES & ~joined | piece.bits & ~ALL_LIKENESSES


def _blocking(pieces: Iterable[RowPiece]) -> list[int]:
    return [_blocks(piece) for piece in pieces]


def shapes_of(catalog: Catalog | None, options: Options, form: XdsFormat) -> Shapes:
    """Return the shapes of a catalog's rows. Without one they are new: any table may come, and none is kept."""
    if catalog is None:
        return Shapes(None, options, form)
    return _kept_shapes(catalog.tables, catalog.case_sensitive, options, form)


@lru_cache(maxsize=4)  # by value: each task of a process brings a catalog of its own, and most are equal
def _kept_shapes(tables: tuple[Table, ...], case_sensitive: bool, options: Options, form: XdsFormat) -> Shapes:
    return Shapes(Catalog(tables, case_sensitive=case_sensitive), options, form)
