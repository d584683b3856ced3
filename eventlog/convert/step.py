"""The step that every engine runs: ordered rows of whole objects in, what became of them out; it
touches no file.

    rows      record batches (PLACED) in the order of (object, record_id): an object's rows
              stand together
    results   record batches of `result_schema`: changes as the format writes them, outcomes,
              refusals, duplicates

Who orders the rows, and where results go, is not known here: the local engine calls it for one
partition of the input after the other, Spark in `mapInArrow`. It holds one chunk of rows. An object
with more rows than a chunk goes through the rules piece by piece (`decide_pieces`), and its
pieces are kept meanwhile by the caller's means.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from eventlog.convert.by_shape import by_shape_of
from eventlog.convert.copies import UniqueRows, deduplicate
from eventlog.convert.forms import (
    ENDS,
    Form,
    Rendering,
    TableNumbers,
    form_of,
    outcomes_of,
    table_numbers,
)
from eventlog.convert.rows import (
    OBJECT,
    OUTCOMES,
    PLACED,
    events_of,
    integers,
    object_text,
    one_batch,
    uncut,
)
from eventlog.convert.settings import ChangeRows, Conversion, DatabaseRows
from eventlog.core.model import Event, Outcome, Position, Reason
from eventlog.core.rules import Round
from eventlog.core.rules.definitions import DefinitionSpan, FormerRows
from eventlog.core.rules.images import open_images
from eventlog.core.rules.meaning import STATUS, Decision
from eventlog.core.schema import Catalog, Table
from eventlog.core.seams import RowReader
from eventlog.xds.write import XdsFormat

if TYPE_CHECKING:
    from eventlog.convert.long_object import Pieces

CHUNK_ROWS: Final = 5_000
CHUNK_BYTES: Final = 4_000_000
"""A chunk holds no more rows and no more bytes than this, and one batch of the input."""
SHAPED_ROWS: Final = 20_000
"""So many rows has a chunk that is written by shape: what a chunk costs beside its rows is shared by more."""
FEW_ROWS: Final = 32
"""Fewer rows are decided before the first of their shapes is learned."""

CHANGE: Final = "change"
OUTCOME: Final = "outcome"
REFUSAL: Final = "refusal"
"""An outcome too: the format cannot write the change of these rows, or not with all of its
values.
"""

OF_FORMATS: Final = frozenset({Reason.REFUSED, Reason.ALTERED, Reason.FILTERED})
"""The reasons of refusals, by formats and policies, which the rules never give."""

ENDING: Final = "ending"
"""How far some changes of a transaction reach (ENDS), where they are brought together."""

DUPLICATE: Final = "duplicate"
"""A row that says the same as another one; it has no outcome of its own."""

RESULT: Final = pa.schema(
    [
        ("kind", pa.string()),
        ("object", pa.string()),
        ("op", pa.string()),
        *OUTCOMES,
    ]
)
"""What results have in every form. A batch holds changes, or ends, or duplicates, or outcomes and
refusals.
"""

Reread = Callable[[], Iterable[pa.RecordBatch]]
"""Begins anew with the first batch whenever it is called."""

Keep = Callable[[Iterable[pa.RecordBatch]], AbstractContextManager[Reread]]
"""Keeps batches outside of memory, to be read several times until the context ends."""


def step(
    batches: Iterable[pa.RecordBatch],
    conversion: Conversion,
    keep: Keep,
    *,
    reader: RowReader | None = None,
    conflicts: Sequence[int] = (),
) -> Iterator[pa.RecordBatch]:
    """Decide rows (PLACED) in the order of (object, record_id), and yield the results.

    Rows without record_id come last. An object too large for a chunk goes through `keep`. Without a
    `reader` there are no read-backs. `conflicts` are record_ids of several objects, in order.
    """
    deciding = _Deciding(conversion, reader, conflicts)
    for chunk in chunks(batches, deciding.most_rows):
        if isinstance(chunk, pa.RecordBatch):
            yield from deciding.whole(chunk)
        else:
            yield from deciding.large(chunk, keep)


def result_schema(form: Form, *, gathers: bool = False) -> pa.Schema:
    """Return the columns of results: every form's, this one's own, and those of transactions."""
    # Every form begins with the position, which RESULT has too.
    schema = pa.schema([*RESULT, *list(form.schema)[1:]])
    if not gathers:
        return schema
    return pa.schema([*schema, *[field for field in ENDS if field.name not in schema.names]])


def kind_of(results: pa.RecordBatch) -> str:
    """Return the kind of a batch of results; OUTCOME also stands for refusals."""
    kind = str(results.column("kind")[0].as_py())
    # Outcomes and refusals stand in one batch, and any of them may be its first.
    if kind == REFUSAL:
        return OUTCOME
    return kind


class _Deciding:
    """The rules and the writer of one conversion."""

    def __init__(
        self,
        conversion: Conversion,
        reader: RowReader | None,
        conflicts: Sequence[int],
    ) -> None:
        self._policy = conversion.policy(conversion.catalog) if conversion.steps else None
        self._output_catalog = conversion.output_catalog
        self._conversion = conversion
        self._former = None
        if conversion.catalog is not None:
            self._former = conversion.catalog.former
        self._today = DefinitionSpan(catalog=conversion.catalog or Catalog())
        self._round = Round(
            catalog=conversion.catalog,
            reader=reader,
            options=replace(conversion.options, hiding=conversion.hides),
            by_object=True,
            needs=self._policy.needs if self._policy else None,
            looks=self._policy.looks if self._policy and self._policy.is_looking else None,
            # A part of a snapshot has the rows of its own objects.
            reads_others=isinstance(conversion.read_back, DatabaseRows),
        )
        self._form = form_of(conversion)
        self._gathers, self._who = conversion.gathers, conversion.who
        self._schema = result_schema(self._form, gathers=self._gathers)
        self._conflicts = conflicts
        has_transactions = not isinstance(conversion.format, XdsFormat | ChangeRows)
        self._transactions = self._gathers or has_transactions
        self._by_shape = by_shape_of(conversion)
        self.most_rows = SHAPED_ROWS if self._by_shape else CHUNK_ROWS

    def whole(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Decide rows of whole objects."""
        unique = deduplicate(rows, self._conflicts)
        others: dict[Position, Outcome] = {}
        refused: dict[Position, Outcome] = {}
        rest = unique.rows
        if self._by_shape is not None and len(rest) >= FEW_ROWS:
            shaped = self._by_shape.write(rest)
            others |= shaped.others
            rest = shaped.rest
            if shaped.columns:
                yield self._batch(CHANGE, len(shaped.columns["position"]), shaped.columns)
        for objects in cut_objects(rest):
            for span, decision in self._decide(objects):
                rendering = self._rendering(span)
                for change in decision.changes:
                    rendering.take(change)
                yield from self._changes(rendering)
                others |= decision.outcomes.others
                refused |= outcomes_of(rendering.refused)
        # In the order of the rows; what a format refused was published as far as the rules know.
        positions = unique.rows.column("record_id")
        yield from self._outcomes(positions, {**others, **refused}, refused)
        yield from self._set_aside(unique)

    def large(self, pieces: Iterable[pa.RecordBatch], keep: Keep) -> Iterator[pa.RecordBatch]:
        """Decide the pieces of one object."""
        aside: list[pa.RecordBatch] = []
        # To keep the pieces reads all of them, so `aside` is full when the block begins.
        with keep(self._deduplicate(pieces, aside)) as kept:
            yield from aside
            # Hardly ever needed.
            from eventlog.convert.long_object import decide_pieces

            for span, pieces_of_span in self._long_spans(lambda: map(self._events, kept())):
                rendering = self._rendering(span)
                for ended in decide_pieces(self._round_of(span), pieces_of_span, rendering.take):
                    yield from self._changes(rendering)
                    others = {outcome.position: outcome for outcome in ended}
                    refused = {
                        position: outcome for position, outcome in others.items() if outcome.reason in OF_FORMATS
                    }
                    positions = pa.array([position[0] for position in others], pa.int64())
                    yield from self._outcomes(positions, others, refused)

    def _decide(self, rows: pa.RecordBatch) -> list[tuple[DefinitionSpan, Decision]]:
        """Decide whole objects, those under the same definitions together; part an object's events
        where its table changed.
        """
        # Nobody holds the events any more when this returns, while their changes are written.
        events = self._events(rows)
        if self._former is None or not self._former.concerns(events):
            return [(self._today, self._round.decide(events))]
        spans: dict[tuple[int, Catalog], DefinitionSpan] = {}
        events_of_span: dict[tuple[int, Catalog], list[Event]] = {}
        by_object = zip(integers(rows.column(OBJECT)), events, strict=True)
        for _, pairs in groupby(by_object, key=itemgetter(0)):
            # Objects share their first spans, their second ones, and so on: each object's own
            # come one after the other.
            for at, (span, of_span) in enumerate(self._former.spans([event for _, event in pairs])):
                which = at, span.catalog
                spans.setdefault(which, span)
                events_of_span.setdefault(which, []).extend(of_span)
        return [(span, self._round_of(span).decide(events_of_span[which])) for which, span in spans.items()]

    def _long_spans(self, pieces: Pieces) -> Iterator[tuple[DefinitionSpan, Pieces]]:
        """Part one object's pieces where its table changed; each span's pieces begin anew."""
        # The pieces are read once more to see that, which costs less than what it nearly always
        # saves.
        if self._former is None or not any(map(self._former.concerns, pieces())):
            yield self._today, pieces
            return
        start = 0
        for span, count in self._former.runs(chain.from_iterable(pieces())):
            yield span, partial(_slice_events, pieces, start, start + count)
            start += count

    def _round_of(self, span: DefinitionSpan) -> Round:
        """Return the round for a span: its time's tables, read back under today's names."""
        if not span.former:
            return self._round
        reader = self._round.reader
        return replace(self._round, catalog=span.catalog, reader=reader and FormerRows(reader, span))

    def _rendering(self, span: DefinitionSpan) -> Rendering:
        policy, catalog, numbers = self._policy, self._output_catalog, None
        if span.former:
            catalog = span.catalog_by_names(self._conversion.former_names)
            if self._conversion.steps:
                policy = self._conversion.policy(catalog)
                catalog = policy.catalog
            numbers = self._numbers(span, catalog or ())
        rendering = self._form.rendering(catalog, numbers).behind(policy)
        if span.former:
            rendering.of_then(span, self._conversion.former_names)
        return rendering.in_transactions() if self._gathers else rendering

    def _numbers(self, span: DefinitionSpan, output_tables: Iterable[Table]) -> TableNumbers:
        """Number a span's tables, its former ones first (`Conversion.output_tables`)."""
        assert self._former is not None
        today = table_numbers(self._output_catalog)
        # By identity: two definitions of one table may be equal, and have a number each.
        number_of = {id(table): at for at, table in enumerate(self._former.former, len(today))}
        former_numbers = [number_of[id(table)] for table in span.former.values()]
        numbers: dict[tuple[str | None, str], int] = {}
        for at, table in enumerate(output_tables):
            if at < len(former_numbers):
                numbers[table.schema, table.name] = former_numbers[at]
            else:
                numbers[table.schema, table.name] = today[table.schema, table.name]
        return numbers

    def _events(self, rows: pa.RecordBatch) -> Sequence[Event]:
        """Make the events of rows; without transactions if the format has none."""
        return open_images(events_of(rows, transactions=self._transactions, who=self._who), self._round.catalog)

    def _deduplicate(
        self,
        pieces: Iterable[pa.RecordBatch],
        aside: list[pa.RecordBatch],
    ) -> Iterator[pa.RecordBatch]:
        """Yield the pieces for the rules; rows that end before them go `aside`."""
        # Uncut: copies of a row stand side by side, and may not be in two pieces.
        for piece in uncut(pieces):
            unique = deduplicate(piece, self._conflicts)
            aside += self._set_aside(unique)
            yield unique.rows

    def _changes(self, rendering: Rendering) -> Iterator[pa.RecordBatch]:
        changes, written = rendering.changes, rendering.rendered()
        if len(written):
            columns = {name: written.column(name) for name in written.schema.names}
            columns["object"] = pa.array([object_text(change.row) for change in changes], pa.string())
            columns["op"] = pa.array([change.op.value for change in changes], pa.string())
            yield self._batch(CHANGE, len(written), columns)
        if self._gathers:
            ends = rendering.ended()
            if len(ends):
                columns = {name: ends.column(name) for name in ENDS.names}
                yield self._batch(ENDING, len(ends), columns)

    def _outcomes(
        self,
        positions: pa.Array,
        others: Mapping[Position, Outcome],
        refused: Mapping[Position, Outcome],
    ) -> Iterator[pa.RecordBatch]:
        """Yield the outcomes of decided rows: published, but for the others."""
        if not len(positions):
            return
        published = Outcome(position=())
        # As usual: no Python object is made for any of the rows.
        if not others:
            columns = {
                "position": positions,
                "status": _all(published.status.value, positions),
                "reason": _all(published.reason.value, positions),
            }
            yield self._batch(OUTCOME, len(positions), columns)
            return
        # Values are made only for the few that are not simply published.
        numbers = pa.array([number for (number,) in others], pa.int64())
        found = pc.is_in(positions, value_set=numbers)
        outcomes = [others[number,] for number in positions.filter(found).to_pylist()]
        columns = {
            "status": _put(published.status.value, found, [outcome.status.value for outcome in outcomes]),
            "reason": _put(published.reason.value, found, [outcome.reason.value for outcome in outcomes]),
            "note": _put(published.note, found, [outcome.note for outcome in outcomes]),
        }
        if refused:
            kinds = [REFUSAL if outcome.position in refused else OUTCOME for outcome in outcomes]
            columns["kind"] = _put(OUTCOME, found, kinds)
        yield self._batch(OUTCOME, len(positions), {"position": positions, **columns})

    def _set_aside(self, unique: UniqueRows) -> Iterator[pa.RecordBatch]:
        """Yield the results of rows kept from the rules."""
        if unique.invalid:
            positions = pa.array([position for position, _ in unique.invalid], pa.int64())
            columns = {
                "position": positions,
                "status": _all(STATUS[Reason.INVALID].value, positions),
                "reason": _all(Reason.INVALID.value, positions),
                "note": pa.array([note for _, note in unique.invalid], pa.string()),
            }
            yield self._batch(OUTCOME, len(positions), columns)
        if unique.duplicates:
            columns = {"position": pa.array(unique.duplicates, pa.int64())}
            yield self._batch(DUPLICATE, len(unique.duplicates), columns)

    def _batch(self, kind: str, count: int, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
        return fill_columns(self._schema, count, {"kind": pa.repeat(pa.scalar(kind, pa.string()), count), **columns})


def fill_columns(schema: pa.Schema, count: int, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Make a batch of so many rows with these columns; the others are NULL."""
    arrays = []
    for field in schema:
        array = columns.get(field.name)
        arrays.append(pa.nulls(count, field.type) if array is None else array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _slice_events(pieces: Pieces, start: int, end: int) -> Iterator[Sequence[Event]]:
    """Yield the events at these places, in pieces."""
    piece_start = 0
    for piece in pieces():
        events = piece[max(start - piece_start, 0) : max(end - piece_start, 0)]
        piece_start += len(piece)
        if events:
            yield events


def _all(word: str, positions: pa.Array) -> pa.Array:
    return pa.repeat(pa.scalar(word, pa.string()), len(positions))


def _put(usual: str | None, places: pa.Array, words: Sequence[str | None]) -> pa.Array:
    """Put words into these places of a column that has a usual one elsewhere."""
    column = pa.repeat(pa.scalar(usual, pa.string()), len(places))
    return pc.replace_with_mask(column, places, pa.array(words, pa.string()))


def cut_objects(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut rows in the order of their objects into pieces of whole objects, of about CHUNK_ROWS rows."""
    numbers, start = integers(rows.column(OBJECT)), 0
    while start < len(rows):
        last = min(start + CHUNK_ROWS, len(rows)) - 1
        end = bisect_right(numbers, numbers[last])
        yield rows.slice(start, end - start)
        start = end


def chunks(
    batches: Iterable[pa.RecordBatch], most_rows: int = CHUNK_ROWS
) -> Iterator[pa.RecordBatch | Iterator[pa.RecordBatch]]:
    """Cut rows (PLACED, in the order of their objects) into chunks of whole objects.

    An object too large for a chunk comes in pieces, to be taken before the next chunk.
    """
    source = iter(batches)
    held: list[pa.RecordBatch] = []
    for batch in source:
        held.append(batch)
        if sum(map(len, held)) < most_rows and sum(part.nbytes for part in held) < CHUNK_BYTES:
            continue
        rows = one_batch(held, PLACED)
        objects = integers(rows.column(OBJECT))
        # The last object may go on in the next batch, so it stays for the next chunk.
        last = bisect_left(objects, objects[-1])
        if last:
            yield rows.slice(0, last)
            held = [rows.slice(last)]
        else:
            # It is the only one: it comes in pieces, and leaves in `held` what stands behind it.
            held = []
            yield _pieces(rows, objects[-1], source, held)
    if held:
        yield one_batch(held, PLACED)


def _pieces(
    first: pa.RecordBatch,
    number: int,
    source: Iterator[pa.RecordBatch],
    rest: list[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one object; the rest of its last batch goes into `rest`."""
    yield first
    for batch in source:
        end = bisect_right(integers(batch.column(OBJECT)), number)
        if end:
            yield batch.slice(0, end)
        if end < len(batch):
            rest.append(batch.slice(end))
            return
