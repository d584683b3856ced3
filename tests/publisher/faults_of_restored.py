"""Faults about logs and targets that are restored (decision 62); faults.py has the others."""

from __future__ import annotations

from tests.publisher.fault import JOURNAL, TAKE, TARGET, JournalFault

RESTORED = "restored.py"

OF_RESTORED = [
    JournalFault(
        "a plan that the log has lost is not adopted",
        RESTORED,
        "if named is not None and named.number >= row.plans:",
        "if False:",
    ),
    JournalFault(
        "a plan of the same number is taken for the journal's",
        RESTORED,
        "if named is not None and named.number >= row.plans:",
        "if named is not None and named.number > row.plans:",
    ),
    JournalFault(
        "a number of an adopted plan comes again", JOURNAL, "plans=max(row.plans, named.number)", "plans=row.plans"
    ),
    JournalFault(
        "rows that may be at a target go", JOURNAL, "row = replace(row, restored=restored, warning=warning)", "pass"
    ),
    JournalFault(
        "an adopted plan holds less than the one before",
        JOURNAL,
        "restored = max(named.highest, EVER if row.restored is None else row.restored)",
        "restored = named.highest",
    ),
    JournalFault(
        "rows of a restored log go behind a hold", TAKE, "restored is not None and number <= restored", "False"
    ),
    JournalFault(
        "what a process has given to whom nobody can ask is forgotten",
        TARGET,
        "if not adopt_given(self._journal, row, self._given, self.doubts):",
        "if True:",
    ),
    JournalFault("a target that was restored gets nothing again", RESTORED, "elif lost is not None:", "elif False:"),
    JournalFault(
        "rows that a target has lost are not parked for it",
        JOURNAL,
        "            journal.park_new(name, lost)\n            plan",
        "            plan",
    ),
    JournalFault(
        "rows that wait are sent again beside", JOURNAL, "lost = (waiting & known) - lacking", "lost = waiting & known"
    ),
    JournalFault(
        "rows that nobody has are sent again", JOURNAL, "lost = (waiting & known) - lacking", "lost = waiting - lacking"
    ),
    JournalFault(
        "rows that ended are not sent again",
        JOURNAL,
        "lost |= self._requeue(journal, rows, PROCESSED_STATUSES)",
        "pass",
    ),
    JournalFault(
        "how a row ended for others is forgotten when it is sent again",
        JOURNAL,
        '            journal.execute("answer_before", runs_of(rows))\n',
        "",
    ),
    JournalFault(
        "plans that a target has lost stay its last ones",
        JOURNAL,
        "journal.move(replace(row, plan=plan, target_plan=target_plan, recent=recent))",
        "journal.move(row)",
    ),
    JournalFault("what was asked before a doubt counts", JOURNAL, "if doubts not in (None, self.doubts):", "if False:"),
]
