"""Compares the journal with the last plan of a target, where the log or the target may have been restored.

docs/decisions/0062-restored-logs.md is the law.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Final

from eventlog.core.plural import count_words
from eventlog.publisher.plans import PlanName, read_plan, split_recent

if TYPE_CHECKING:
    from eventlog.publisher.journal import Journal
    from eventlog.publisher.tables import JournalRow

Given = MutableMapping[str, str]
"""The last plan of each output, as this process knows it."""

LACKS: Final = "may lack changes: `eventlog verify` finds them"
"""What is said of a target that may have lost what no journal knows any more."""

_log = logging.getLogger(__name__)


def compare_plans(journal: Journal, row: JournalRow, last: str, doubts: int, *, is_open: bool) -> JournalRow:
    """Compare an output with its target's last plan; correct a restored log; return the output's
    row then.

    With an open plan the target may have the one before.
    """
    if last == row.plan or (is_open and last == row.target_plan):
        return row
    named, lost = read_plan(last), split_recent(row.recent, last)
    if named is not None and named.number >= row.plans:
        _adopt(journal, row, last, named, doubts)
    elif lost is not None:
        recent, rows = lost
        again = journal.send_again(row.name, rows, doubts, target_plan=last, recent=recent)
        text = "The target of %s has lost its last plans, and gets %s once more; it has plan %s of %s."
        _log.warning(text, row.name, count_words(len(again), "row"), last or "none", row.plan)
    elif row.plans:
        target_plan = last or "none"
        warning = (
            f"The target is not where the journal left it: it has plan {target_plan}, and {row.plan or 'none'} was made."
            f" It {LACKS}."
        )
        if warning != row.warning:
            journal.warn(row.name, warning)
            _log.warning("%s: %s", row.name, warning)
    return journal.output(row.name)


def adopt_given(journal: Journal, row: JournalRow, given: Given, doubts: int) -> bool:
    """Adopt the last plan given by this process to an output that cannot be asked, if the log has
    lost it.
    """
    plan = given.get(row.name, "")
    named = read_plan(plan)
    if named is None or named.number < row.plans or plan == row.plan:
        given[row.name] = row.plan
        return False
    _adopt(journal, row, plan, named, doubts)
    return True


def _adopt(journal: Journal, row: JournalRow, plan: str, named: PlanName, doubts: int) -> None:
    """Hold rows perhaps at the target until the output is resumed."""
    warning = (
        f"The log was restored to a state before plan {plan} of {row.name}. Rows up to {named.highest} may be at its"
        f" target already, or have the numbers of rows that are there: they wait. If the target was restored, too, it {LACKS}."
    )
    if journal.adopt(row.name, plan, named, warning, doubts):
        _log.error("%s `eventlog outputs resume %s` publishes them.", warning, row.name)
