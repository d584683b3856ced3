"""Decides whole objects: ordered rows in, what the format wrote of their changes and their outcomes out.

This is the step that every engine has: who orders the rows, and where results go, is not known here. Rows come in the
order of (object, record_id), so that an object's rows stand together. An object with more rows than a chunk should hold
is kept once by the caller's means, and goes through the rules piece by piece (`Round.decide_pieces`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from msgspec import Struct

from eventlog.convert.chosen import form_of
from eventlog.convert.chunks import Keep, chunks
from eventlog.convert.columns import OUTCOMES
from eventlog.convert.events import events_of, one_batch, uncut
from eventlog.convert.forms import outcomes_of
from eventlog.convert.settings import Conversion
from eventlog.convert.sift import sift
from eventlog.core.model import Outcome, Position
from eventlog.core.rules import Round
from eventlog.core.seams import RowReader

NO_CONFLICTS = frozenset[int]()


class DecidedRows(Struct, frozen=True, kw_only=True):
    """`rendered` (of the form's schema) and `outcomes` (OUTCOMES), in no order; how many rows were dropped as duplicates."""

    rendered: pa.RecordBatch
    outcomes: pa.RecordBatch
    duplicates: int = 0


class ConversionRules:
    """The rules and the writer of one conversion. Without a `reader` nobody can answer read-backs."""

    def __init__(self, conversion: Conversion, reader: RowReader | None = None) -> None:
        self._round = Round(catalog=conversion.catalog, reader=reader, options=conversion.options)
        self._form = form_of(conversion)

    def results(
        self, batches: Iterable[pa.RecordBatch], keep: Keep, conflicts: frozenset[int] = NO_CONFLICTS
    ) -> Iterator[DecidedRows]:
        """Decides rows (PLACED) that come in the order of (object, record_id), rows without record_id last.

        `keep` is used for an object that does not fit into a chunk; `conflicts` are record_ids that stand at several
        objects (`conflicts.conflicting`).
        """
        for chunk in chunks(batches):
            if chunk.rows is not None:
                yield self.decided(chunk.rows, conflicts)
            elif chunk.pieces is not None:
                yield from self._large(chunk.pieces, keep, conflicts)

    def decided(self, rows: pa.RecordBatch, conflicts: frozenset[int] = NO_CONFLICTS) -> DecidedRows:
        """Decides rows (PLACED) of whole objects, in the order of (object, record_id)."""
        sifted = sift(rows, conflicts)
        decision = self._round.decide_objects(events_of(sifted.rows))
        rendering = self._form.rendering(self._round.catalog)
        for change in decision.changes:
            rendering.take(change)
        outcomes = _outcomes_of(sifted.rows, {**decision.outcomes.others, **outcomes_of(rendering.refused)})
        both = one_batch([outcomes, sifted.outcomes], OUTCOMES) if len(sifted.outcomes) else outcomes
        return DecidedRows(rendered=rendering.rendered(), outcomes=both, duplicates=sifted.duplicates)

    def _large(self, pieces: Iterable[pa.RecordBatch], keep: Keep, conflicts: frozenset[int]) -> Iterator[DecidedRows]:
        """Decides the pieces of one object."""
        over: list[DecidedRows] = []
        with keep(self._sifted(pieces, conflicts, over)) as kept:
            yield from over
            rendering = self._form.rendering(self._round.catalog)
            for outcomes in self._round.decide_pieces(lambda: map(events_of, kept()), rendering.take):
                yield DecidedRows(rendered=rendering.rendered(), outcomes=_outcomes(outcomes))

    def _sifted(
        self, pieces: Iterable[pa.RecordBatch], conflicts: frozenset[int], over: list[DecidedRows]
    ) -> Iterator[pa.RecordBatch]:
        """The pieces as the rules get them; what ends before goes into `over`."""
        for piece in uncut(pieces):
            sifted = sift(piece, conflicts)
            if len(sifted.outcomes) or sifted.duplicates:
                empty = self._form.rendering(self._round.catalog).rendered()
                over.append(DecidedRows(rendered=empty, outcomes=sifted.outcomes, duplicates=sifted.duplicates))
            yield sifted.rows


def _outcomes_of(rows: pa.RecordBatch, exceptions: Mapping[Position, Outcome]) -> pa.RecordBatch:
    """The outcomes of the rows that the rules saw: published, but for the exceptions."""
    if exceptions:
        published = Outcome(position=())
        found = [exceptions.get((number,), published) for number in rows.column("record_id").to_pylist()]
        return _columns(rows.column("record_id"), found)
    published = Outcome(position=())
    words = [pa.repeat(pa.scalar(word.value, pa.string()), len(rows)) for word in (published.status, published.reason)]
    notes = pa.nulls(len(rows), pa.string())
    return pa.RecordBatch.from_arrays([rows.column("record_id"), *words, notes], schema=OUTCOMES)


def _outcomes(outcomes: Sequence[Outcome]) -> pa.RecordBatch:
    return _columns(pa.array([outcome.position[0] for outcome in outcomes], pa.int64()), outcomes)


def _columns(positions: pa.Array, outcomes: Sequence[Outcome]) -> pa.RecordBatch:
    columns = [
        positions,
        pa.array([outcome.status.value for outcome in outcomes], pa.string()),
        pa.array([outcome.reason.value for outcome in outcomes], pa.string()),
        pa.array([outcome.note for outcome in outcomes], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=OUTCOMES)
