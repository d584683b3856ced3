"""The proof of one table: which of its objects an output does not hold as it should, which are on
their way, and why.

What differs is looked at again until nothing of it is on its way, or the time for that is over. An
object is on its way while rows of the log about it wait, while a new one comes, or while a mirror
has not applied all of its change table.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.compare.engine import Comparison, Difference, DifferenceKind
from eventlog.compare.pace import Pace
from eventlog.compare.sides import ComparedSide, Key
from eventlog.compare.texts import plain_text
from eventlog.core.errors import shorten
from eventlog.core.proofs import LastProof
from eventlog.verify.expected import Expected
from eventlog.verify.objects import LastRow, Objects, RowReason
from eventlog.verify.targets import Target

LOOK_SECONDS: Final = 1.0
"""Seconds between two looks at objects that are on their way."""

MOST_CHARACTERS: Final = 200
"""Characters of what an error or a note of a last proof says."""


class NamedValue(Struct, frozen=True, kw_only=True):
    """A column whose values differ, as texts."""

    column: str
    source: str | None
    target: str | None


class NamedDifference(Struct, frozen=True, kw_only=True):
    """An object that differs, by the key that the log has for it; the newest row about it, and what
    became of that.
    """

    key: str
    kind: str
    values: tuple[NamedValue, ...] = ()
    record_id: int | None = None
    status: str | None = None
    reason: str | None = None
    note: str | None = None


class TableProof(Struct, frozen=True, kw_only=True):
    """What was found out about one table: how many objects differ, by kind, and some of them by
    name.

    `waiting` objects differ and are on their way. `problem` says why it could not be compared,
    `notes` what was not. `more` says that so many differ that the comparison was ended. One that is
    not `compared` has no rows to compare.
    """

    table: str
    rows: int = 0
    missing: int = 0
    extra: int = 0
    value: int = 0
    double: int = 0
    waiting: int = 0
    more: bool = False
    differences: tuple[NamedDifference, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str | None = None
    seconds: float = 0.0
    compared: bool = True

    @property
    def differing(self) -> int:
        """Count the differing objects not on their way."""
        return self.missing + self.extra + self.value + self.double

    @property
    def equal(self) -> bool:
        return self.problem is None and not self.differing and not self.more


def last_proof(proof: TableProof, output: str, at: float) -> LastProof:
    """Convert a proof to its kept form; an impossible one counts as a failed attempt."""
    if proof.problem is not None:
        error = shorten(proof.problem, MOST_CHARACTERS)
        return LastProof(output=output, table=proof.table, error=error, failed_at=at)
    return LastProof(
        output=output,
        table=proof.table,
        at=at,
        seconds=proof.seconds,
        rows=proof.rows,
        missing=proof.missing,
        extra=proof.extra,
        value=proof.value,
        double=proof.double,
        waiting=proof.waiting,
        more=proof.more,
        note=shorten(" ".join(proof.notes), MOST_CHARACTERS),
    )


class Limits(Struct, frozen=True, kw_only=True):
    """For how many seconds objects on their way are waited for, how many differences are named, and
    how many end it.
    """

    wait: float = 10.0
    shown: int = 1000
    most: int = 10_000


class Proving:
    """Proves that a target holds one table."""

    def __init__(
        self,
        expected: Expected,
        target: Target,
        objects: Objects | None,
        pace: Pace,
        limits: Limits,
        *,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._expected = expected
        self._target = target
        self._objects = objects
        self._limits = limits
        self._sleep = sleep
        self._pace = pace
        self._waited: frozenset[str] = frozenset()
        self._before = 0
        self._side: ComparedSide | None = None
        self._kept = False
        self.comparison: Comparison | None = None
        self.differing: list[Difference] = []
        """The objects that differ, all that were found."""

    @property
    def hashed(self) -> int:
        """Count the rows of the source hashed so far."""
        if self.comparison is None:
            return 0
        return self.comparison.progress.hashed

    def run(self) -> TableProof:
        """Compare the table, and look again at differences."""
        began = time.monotonic()
        try:
            return self._run(began)
        finally:
            for side in (self._expected.side, self._side):
                _close_side(side)

    def _run(self, began: float) -> TableProof:
        comparison = self._begin()
        # A table of which nothing is right ends here, and not after all of its rows.
        suspects = list(islice(self._leave_out_filled(comparison.differences()), self._limits.most))
        more = len(suspects) >= self._limits.most
        self.differing, waiting = self._await_rows(comparison, suspects)
        kinds = Counter(difference.kind for difference in self.differing)
        return TableProof(
            table=self._expected.source.called,
            rows=comparison.progress.hashed,
            missing=kinds[DifferenceKind.MISSING],
            extra=kinds[DifferenceKind.EXTRA],
            value=kinds[DifferenceKind.VALUE],
            double=kinds[DifferenceKind.DOUBLE],
            waiting=waiting,
            more=more,
            differences=tuple(self._name_differences(self.differing[: self._limits.shown])),
            seconds=round(time.monotonic() - began, 3),
        )

    def _begin(self) -> Comparison:
        """Begin a comparison of both sides as they are from now on.

        A history, and a policy's view of a table, are read once: rows waiting before and after that may be
        missing there, and so may all later ones.
        """
        _close_side(self._side)
        objects = self._objects
        if objects is not None:
            self._before, self._waited = objects.newest(), objects.waiting()
        self._side = self._target.side(self._expected.table, self._expected.compared)
        # Sides that were read into a file are closed at the end; the others are as they are now.
        self._kept = any(hasattr(side, "close") for side in (self._side, self._expected.side))
        if objects is not None and self._kept:
            self._waited |= objects.waiting()
        self.comparison = Comparison(self._expected.side, self._side, self._expected.compared, self._pace)
        return self.comparison

    def _await_rows(
        self,
        comparison: Comparison,
        suspects: Sequence[Difference],
    ) -> tuple[list[Difference], int]:
        """Find lasting differences, and count rows still on their way."""
        lasting: list[Difference] = []
        deadline = time.monotonic() + self._limits.wait
        pending = [difference.key for difference in suspects]
        while pending:
            # What waits is asked before the target is read: who asks later may find it published.
            before = self._last(pending)
            behind = self._target.behind(self._expected.table, self._expected.compared, pending)
            differing = [*self._leave_out_filled(comparison.compare_again(pending))]
            after = self._last([difference.key for difference in differing])
            pending = []
            for difference in differing:
                key = difference.key
                if key in behind or self._moves(key, before, after):
                    pending.append(key)
                else:
                    lasting.append(difference)
            if not pending or time.monotonic() >= deadline:
                break
            self._sleep(LOOK_SECONDS)
            comparison = self._again(comparison)
        return lasting, len(pending)

    def _leave_out_filled(self, differences: Iterable[Difference]) -> Iterator[Difference]:
        """Leave out values that the target gave by itself where the source has none."""
        filled = self._target.filled(self._expected.table)
        for found in differences:
            values = tuple(one for one in found.values if one.source is not None or one.column.casefold() not in filled)
            if values == found.values:
                yield found
            elif values:
                yield replace(found, values=values)

    def _again(self, comparison: Comparison) -> Comparison:
        """Read again the parts that change over time."""
        if not self._kept:
            return comparison
        refresh = getattr(self._expected.side, "refresh", None)
        if refresh is not None:
            refresh()
        return self._begin()

    def _last(self, keys: Sequence[Key]) -> dict[str, LastRow]:
        if self._objects is None:
            return {}
        return self._objects.last([text for key in keys for text in self._expected.keyed(key)])

    def _moves(self, key: Key, before: dict[str, LastRow], after: dict[str, LastRow]) -> bool:
        """Return True if rows about the object wait, came meanwhile, or waited when a history was read."""
        for text in self._expected.keyed(key):
            had, has = before.get(text), after.get(text)
            if had != has or (has is not None and has.waiting):
                return True
            if self._kept and (text in self._waited or (has and has.record_id > self._before)):
                return True
        return False

    def _name_differences(self, differing: Sequence[Difference]) -> Iterator[NamedDifference]:
        """Yield the differences by the log's keys, with the newest row about each."""
        last = self._last([difference.key for difference in differing])
        reasons: dict[int, RowReason] = {}
        if self._objects is not None:
            reasons = self._objects.reasons([row.record_id for row in last.values()])
        for difference in differing:
            texts = self._expected.keyed(difference.key)
            row = next((last[text] for text in texts if text in last), None)
            values = [
                NamedValue(
                    column=value.column,
                    source=plain_text(value.source),
                    target=plain_text(value.target),
                )
                for value in difference.values
            ]
            named = NamedDifference(key=texts[0], kind=str(difference.kind), values=tuple(values))
            if row is not None:
                named = replace(named, record_id=row.record_id)
                why = reasons.get(row.record_id)
                # It may have been purged since.
                if why is not None:
                    named = replace(named, status=why.status, reason=why.reason, note=why.note)
            yield named


def _close_side(side: Any) -> None:
    close = getattr(side, "close", None)
    if close is not None:
        close()
