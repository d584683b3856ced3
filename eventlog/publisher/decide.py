"""From the rows of a take to what the rules decide, which outputs share that take the same batches."""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import count
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import ConfigError
from eventlog.core.model import (
    Change,
    Event,
    Outcome,
    Outcomes,
    Reason,
    exceptional,
)
from eventlog.core.rules import Decision, Round
from eventlog.core.rules.definitions import DefinitionSpan, FormerRows
from eventlog.core.rules.images import open_images
from eventlog.core.rules.meaning import together
from eventlog.core.rules.round import publishing_order
from eventlog.core.rules.screen import Identities, in_order
from eventlog.core.schema import Catalog
from eventlog.publisher.encode import Part
from eventlog.publisher.selection import Take

if TYPE_CHECKING:
    from eventlog.publisher.journal_view import View

AGAIN_SECONDS: Final = 30.0
"""Seconds for which a look holds: to look at thousands of tables may take seconds."""

Cause = tuple[str | None, str | None]
"""The table_name and the column_name of a row that could not be read."""


class Looks:
    """When tables were looked at because of what."""

    def __init__(self) -> None:
        self._at: dict[Cause, float] = {}

    def cover(self, causes: AbstractSet[Cause]) -> bool:
        """Return True if a look because of each of these was not long ago: they are not there."""
        since = monotonic() - AGAIN_SECONDS
        return bool(causes) and all(self._at.get(cause, since) > since for cause in causes)

    def note(self, causes: AbstractSet[Cause]) -> None:
        """Note a look at tables because of these."""
        now = monotonic()
        recent = {cause: at for cause, at in self._at.items() if at > now - AGAIN_SECONDS}
        self._at = recent | dict.fromkeys(causes, now)


def causes_of(events: Sequence[Event], outcomes: Sequence[Outcome]) -> frozenset[Cause]:
    """List the names in unreadable rows."""
    reasons = exceptional(outcomes)
    invalid = {outcome.position for outcome in reasons if outcome.reason in (Reason.INVALID, Reason.DAMAGED)}
    if not invalid:
        return frozenset()
    return frozenset((event.table, event.column) for event in events if event.position in invalid)


KEPT_BATCHES: Final = 2
"""So many decisions are kept for outputs that take the same batches a moment later."""


def parts_of(asked: Round, groups: Sequence[Sequence[Event]]) -> list[Part]:
    """Decide groups, each by itself."""
    catalog = Catalog() if asked.catalog is None else asked.catalog
    former = catalog.former
    groups = [open_images(events, catalog) for events in groups]
    if former is None or not any(map(former.concerns, groups)):
        decision = together(asked.decide_groups(groups))
        return [Part(decision=decision, span=DefinitionSpan(catalog=catalog))]
    # Rows of an object that were written under other definitions are decided apart.
    parts: list[Part] = []
    order = publishing_order(asked.options)
    for group in groups:
        decided: list[tuple[DefinitionSpan, Change]] = []
        decisions: list[Decision] = []
        for span, events in former.spans(in_order(group, asked.options)):
            decision = _decide_events(asked, span, events)
            decisions.append(decision)
            decided += [(span, change) for change in decision.changes]
        decided.sort(key=lambda of_span: order(of_span[1]))
        outcomes = together(decisions).outcomes
        for span, changes in former.pieces(decided):
            parts.append(Part(decision=Decision(changes, outcomes), span=span))
            outcomes = Outcomes((), {})
    return parts


def _decide_events(asked: Round, span: DefinitionSpan, events: Sequence[Event]) -> Decision:
    """Decide events by the tables of their time, read back by their names of today."""
    reader = asked.reader
    if span.former and reader is not None:
        reader = FormerRows(reader, span)
    return replace(asked, catalog=span.catalog, reader=reader).decide(events)


class _Decided(Struct, eq=False):
    """What rows amount to, and how many other outputs may ask for it.

    They were read back between the moments `began` and `ended`.
    """

    groups: Sequence[Sequence[Event]]
    parts: Sequence[Part]
    began: int
    ended: int
    takers: int


class Decider:
    """Asks the rules what rows amount to, once for all outputs that take the same.

    It goes by the tables as they looked once. `tracked` is what the mark of that name was before,
    and `stamp` how many versions the history of tables had. `looks` are those of the former one.
    """

    def __init__(
        self,
        round_: Round,
        tracked: str | None = None,
        looks: Looks | None = None,
        stamp: int | None = None,
        faults: Mapping[str, ConfigError] | None = None,
    ) -> None:
        self.faults = faults or {}
        """Outputs of which the steps do not fit these tables: they get nothing."""
        self.round = round_
        self.identities = Identities(round_.catalog)
        self.tracked = tracked
        self.stamp = stamp
        self.looks = looks or Looks()
        self._kept: deque[_Decided] = deque(maxlen=KEPT_BATCHES)
        # Numbers and no times, for only their order counts.
        self._moments = count(1)
        self._latest: dict[str, int] = {}
        """When the reading ended of what each output got last."""
        self._one_at_a_time = Lock()

    def decide(
        self,
        taken: Take,
        groups: Sequence[Sequence[Event]],
        moment: Callable[[], dt.datetime],
        *,
        output: str,
        outputs: int = 1,
    ) -> Sequence[Part]:
        """Decide the rows for an output, of so many `outputs`.

        `groups` are decided each by itself, because they were so once. `moment` is the database's
        clock.

        Law: of no object an output gets an earlier reading after a later one. So an earlier decision counts
        only if it was read after everything that the output got.
        """
        # Others may take the same rows a moment later. Few do where some had waited: these would
        # only drive out what the others will ask for.
        shared = outputs > 1 and not taken.unparked
        decided = self._find_known(output, groups) if shared else None
        if decided is None:
            asked, began = self.round, next(self._moments)
            # Where events may take effect later the clock counts. It is asked after the rows were
            # read, so that none of them is ahead of it.
            if asked.options.future:
                asked = replace(asked, options=replace(asked.options, now=moment()))
            parts = self._parts(asked, groups)
            decided = _Decided(groups, parts, began, next(self._moments), outputs - 1)
            if shared:
                with self._one_at_a_time:
                    self._kept.append(decided)
        self._latest[output] = decided.ended
        return decided.parts

    def _parts(self, asked: Round, groups: Sequence[Sequence[Event]]) -> list[Part]:
        return parts_of(asked, groups)

    def knows_tables(self, view: View, *, by_memory: bool = False) -> bool:
        """Return True if it goes by the tables as they are; `by_memory`, as far as memory knows.

        To be asked after the rows: a reader of one that was written after DDL sees the entry of that DDL.
        The other way round DDL could come between the two looks.
        """
        if self.tracked is not None and self.tracked != view.memory.tracked:
            return False
        return by_memory or self.stamp is None or int(view.ask("history_stamp")[0][0]) == self.stamp

    def _find_known(self, output: str, groups: Sequence[Sequence[Event]]) -> _Decided | None:
        """Find the decision of the same rows for another output: of the same contents too, for somebody may
        have given a number to another row since.
        """
        with self._one_at_a_time:
            for kept in self._kept:
                if kept.groups == groups:
                    kept.takers -= 1
                    # Let go when all have it: it is as large as the rows.
                    if not kept.takers:
                        self._kept.remove(kept)
                    is_later = kept.began >= self._latest.get(output, 0)
                    return kept if is_later else None
        return None
