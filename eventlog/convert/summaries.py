"""What the steps of a conversion amount to, whichever engine took them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from eventlog.convert.commit import Summary
from eventlog.convert.stages import DecidedBucket
from eventlog.convert.streams import StreamResult
from eventlog.core.schema import Table

PUBLISHED = "S published"
REFUSED = "E refused"


def summary_of(rows: int, decided: Sequence[DecidedBucket], parts: int = 0) -> Summary:
    """What the steps of a conversion amount to."""
    outcomes = Counter[str]()
    for one in decided:
        outcomes.update(one.outcomes)
    summary = Summary(
        rows=rows,
        duplicates=sum(one.duplicates for one in decided),
        changes=sum(sum(one.rendered.rows) for one in decided),
        parts=parts,
    )
    return _with_outcomes(summary, outcomes)


def stream_summary(pieces: Sequence[StreamResult], parts: int = 0) -> Summary:
    """What the pieces of a stream amount to."""
    rows = sum(sum(piece.ended.rows) for piece in pieces)
    notes = tuple(dict.fromkeys(note for piece in pieces for note in piece.notes))
    damage = next((piece.damage for piece in pieces if piece.damage is not None), None)
    return replace(summary_of(rows, pieces, parts), notes=notes, damage=damage)


def with_refused(summary: Summary, refused: int) -> Summary:
    """The same, but so many rows were told and not taken."""
    moved = Counter(summary.outcomes)
    moved[PUBLISHED] -= refused
    moved[REFUSED] += refused
    return _with_outcomes(summary, moved)


def until_damage(pieces: Sequence[StreamResult]) -> list[StreamResult]:
    """The pieces to the first that is damaged: what lies behind it is not converted, however a stream was cut."""
    damaged = [number for number, piece in enumerate(pieces, 1) if piece.damage is not None]
    return list(pieces[: damaged[0]] if damaged else pieces)


def tables_of(pieces: Sequence[StreamResult]) -> dict[int, Table]:
    """What the tables of all pieces look like, by their numbers."""
    return {number: table for piece in pieces for number, table in piece.tables.items()}


def counted_changes(decided: Sequence[DecidedBucket]) -> Counter[int]:
    """How many changes there are in each range."""
    counted = Counter[int]()
    for one in decided:
        counted.update(one.rendered.counted())
    return counted


def latest_before(decided: Sequence[DecidedBucket], label: int) -> str:
    """The latest time in the ranges before this one, in forms that number their changes."""
    return max((stamp for one in decided for range_, stamp in one.stamps.items() if range_ < label), default="")


def _with_outcomes(summary: Summary, outcomes: Mapping[str, int]) -> Summary:
    statuses = Counter[str]()
    for ended, count in outcomes.items():
        statuses[ended.partition(" ")[0]] += count
    told = {word: count for word, count in sorted(outcomes.items()) if count}
    return replace(summary, statuses={word: count for word, count in sorted(statuses.items()) if count}, outcomes=told)
