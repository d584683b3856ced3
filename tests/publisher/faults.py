"""Faults for the publisher: put in one at a time, random histories must find each; tests/publisher/finding.py does it.

Each is a piece of the package's text and what stands there instead. A fault that is not found says that the histories
are missing something; one whose text is gone says that this list is.
"""

from __future__ import annotations

from tests.publisher.fault import (
    CARE,
    COMMON,
    CONSUMER,
    DECIDE,
    JOURNAL,
    LETTERS,
    MAKING,
    MEMORY,
    QUEUE,
    READER,
    ROOT,
    SENDING,
    TAKE,
    TARGET,
    UNREAD,
    UNSEALED,
    VIEW,
    WRITING,
    JournalFault,
)
from tests.publisher.faults_of_outputs import OF_OUTPUTS
from tests.publisher.faults_of_restored import OF_RESTORED

FAULTS = [
    JournalFault(
        "a faulty table is never tried again",
        "table_faults.py",
        "self._waiting.get(output, set()) - self.list_untried(now).keys()",
        "()",
    ),
    JournalFault(
        "rows of a table that can be read wait on", JOURNAL, "for table in plan.readable:", "for table in ():"
    ),
    # what outputs share
    JournalFault(
        "an earlier reading is shared",
        DECIDE,
        "is_later = kept.began >= self._latest.get(output, 0)",
        "is_later = True",
    ),
    JournalFault(
        "that an output got a shared reading is forgotten",
        DECIDE,
        "        self._latest[output] = decided.ended\n",
        "        self._latest[output] = max(0 if shared else decided.ended, self._latest.get(output, 0))\n",
    ),
    # statuses and what was said
    JournalFault("the least that was said", LETTERS, "worst = max(counted", "worst = min(counted"),
    JournalFault("left out by one is left out by all", LETTERS, "if len(without) != outputs:", "if not without:"),
    JournalFault("what was said is not kept for others", WRITING, '"answer_make", kept)', '"answer_make", [])'),
    JournalFault(
        "what others said is not asked",
        WRITING,
        "        if memory.any_answers:\n            self._add",
        "        if False:\n            self._add",
    ),
    JournalFault(
        "what was said stays when rows leave", WRITING, '        self.execute("answer_drop", runs_of(gone))\n', ""
    ),
    JournalFault(
        "finished although another output has it ahead",
        WRITING,
        "                if number > first:\n                    final -= batch.records\n",
        "                pass\n",
    ),
    JournalFault(
        "finished although planned",
        WRITING,
        "        for planned in memory.planned.values():\n            final -= planned\n",
        "",
    ),
    JournalFault(
        "finished although parked elsewhere",
        WRITING,
        "        if memory.any_parked and final and memory.outputs.keys() - {name}:\n",
        "        if False:\n",
    ),
    JournalFault(
        "statuses over those of others",
        "databases/sqlite/log.sql",
        (
            "UPDATE /* log */event_log SET /* status */status = :status\n"
            "WHERE /* record_id */record_id IN (SELECT value FROM json_each(:ids)) AND /* status */status = 'N';"
        ),
        (
            "UPDATE /* log */event_log SET /* status */status = :status\n"
            "WHERE /* record_id */record_id IN (SELECT value FROM json_each(:ids));"
        ),
    ),
    # memory and errors
    JournalFault(
        "memory outlives an error",
        JOURNAL,
        "only the tables know.\n                self.forget_memory()\n",
        "only the tables know.\n",
    ),
    JournalFault(
        "memory outlives what others write",
        READER,
        "if memory is None or memory.stamp != stamp:",
        "if memory is None:",
    ),
    JournalFault(
        "resolved outlives an error",
        CONSUMER,
        "        except BaseException as error:\n            self._target.forget()\n",
        "        except BaseException as error:\n",
    ),
    JournalFault(
        "a late publisher may write",
        "databases/sqlite/journal.sql",
        "WHERE name = 'publisher' AND value LIKE '% ' || :token\n",
        "WHERE name = 'publisher'\n",
    ),
    # resolve
    JournalFault(
        "resolve: nothing is there", "publisher/tables.py", "there if has(detail.document) else missing", "missing"
    ),
    JournalFault(
        "resolve: everything is there", "publisher/tables.py", "there if has(detail.document) else missing", "there"
    ),
    JournalFault(
        "resolve: refusals are forgotten",
        TARGET,
        "answers = choose_worst(target.answers)",
        "answers = {}",
    ),
    JournalFault(
        "the target is not taken over",
        TARGET,
        "            self._output.sink.open(tenure)\n",
        "            self._output.sink.epoch = 10**9\n",
    ),
    # answers
    JournalFault(
        "a document without an answer is over",
        SENDING,
        "        self._unsent.discard(document.key)\n        return False\n",
        "        self._over.append(document)\n        return False\n",
    ),
    JournalFault(
        "a document without an answer goes again at once under another plan",
        CONSUMER,
        "                self._journal.later(self.name, unread, now + self._journal.delay(attempts + 1))\n",
        "                self._enter_answers(now, [], unread, {})\n",
    ),
    JournalFault(
        "what is behind an unread document goes", SENDING, "        self._blocked.update(document.objects)\n", ""
    ),
    JournalFault(
        "what is behind a retried document goes",
        SENDING,
        "            self._free_behind(number)\n            self._block(document)\n",
        "            pass\n",
    ),
    JournalFault(
        "what may be at a receiver is freed",
        SENDING,
        "is_unsent = document.key in self._unsent and later not in self._finished",
        "is_unsent = later not in self._finished",
    ),
    JournalFault(
        "documents pass a row that comes again",
        QUEUE,
        "Unanswered(documents, view.come_again(name), self._settings.stops)",
        "Unanswered(documents, {}, self._settings.stops)",
    ),
    JournalFault(
        "what is behind a freed document goes", SENDING, "                names.update(document.objects)\n", ""
    ),
    JournalFault(
        "what is freed is not parked", TARGET, "for document in freed for record", "for document in [] for record"
    ),
    JournalFault(
        "retried rows are over",
        TARGET,
        "for record, outcome in sorted(again.items()):",
        "for record, outcome in ():",
    ),
    JournalFault("retried rows have no time", TARGET, "due = now + self._journal.delay(sent.attempts + 1)", "due = 0"),
    JournalFault("what was taken behind a retried change is over", LETTERS, "or touch(names, blocked):", "or False:"),
    JournalFault(
        "on_retry = stop reads on",
        QUEUE,
        "if max([until or 0, *due]) <= now:",
        "if True:",
    ),
    JournalFault("on_retry = stop sends on", SENDING, "self._all_blocked = self._all_blocked or self._stops", "pass"),
    # holds
    JournalFault(
        "a hold between take and plan", JOURNAL, "if memory.stamp != taken.stamp or is_sealed:", "if is_sealed:"
    ),
    JournalFault("holds are not asked", TAKE, "    if held:\n", "    if False:\n"),
    JournalFault(
        "holds of what waited are not asked",
        TAKE,
        "number in held, is_behind",
        "number in held and former is None, is_behind",
    ),
    JournalFault(
        "release lets nothing go", COMMON, "SET due = 0\nWHERE reason = 'held'", "SET due = due\nWHERE reason = 'held'"
    ),
    JournalFault(
        "hold does not say who has a row",
        "care/journal.py",
        'if read_ranges(records, f"records of plan {plan}") & meant',
        "if False",
    ),
    # waiting
    JournalFault(
        "times are not looked at",
        TAKE,
        "if former is not None and former.waits_at(now):",
        "if False:",
    ),
    JournalFault("others that wait are not seen", VIEW, "limit=limit)[0][0]) == limit", "limit=limit)[0][0]) > limit"),
    JournalFault(
        "a hold does not part a take",
        TAKE,
        "others_wait = memory.any_held or (memory.any_parked and",
        "others_wait = (memory.any_parked and",
    ),
    JournalFault(
        "what waits on goes with its object",
        VIEW,
        "if any(row.waits_at(now) for row in rows):",
        "if False:",
    ),
    JournalFault("next passes what is parked", TAKE, "        waiting=waiting - {EVERY_ROW},\n", ""),
    JournalFault("what a document holds up takes room", VIEW, "if not unanswered.holds_up(leader)]", "if True]"),
    JournalFault("next passes documents that wait", TAKE, "if not self.documents:\n", "if True:\n"),
    JournalFault(
        "waiting does not pass on",
        TAKE,
        "                reason = BEHIND\n        self.stays(record, name)\n",
        "                reason = BEHIND\n        self.led.add(name)\n",
    ),
    JournalFault(
        "what stays does not block",
        TAKE,
        "        self.blocked.add(name)\n        self.led.add(name)\n\n\ndef take(",
        "        self.led.add(name)\n\n\ndef take(",
    ),
    JournalFault(
        "nobody leads behind a row that went",
        JOURNAL,
        "                journal.lead(name, [waited.object for waited in taken.unparked])\n",
        "                pass\n",
    ),
    JournalFault(
        "nobody leads behind a row that is gone",
        JOURNAL,
        '                journal.execute("parked_lead", leaders)\n                memory.leader_gone',
        "                memory.leader_gone",
    ),
    JournalFault(
        "what leads leads again",
        WRITING,
        "for record, due in first_rows if due is None]",
        "for record, _ in first_rows[1:]]",
    ),
    JournalFault("never given up", LETTERS, "if not most_attempts or attempts + 1 < most_attempts:", "if True:"),
    JournalFault("attempts are not counted", TARGET, "outcome.note, sent.attempts + 1)", "outcome.note, 0)"),
    JournalFault(
        "held rows look like those behind them", TAKE, "                reason = BEHIND\n", "                pass\n"
    ),
    JournalFault(
        "times of a clock that was set back stay", JOURNAL, "        if self._clock_went_back:\n", "        if False:\n"
    ),
    JournalFault("numbers end early", "tables.py", "LAST_NUMBER: Final = 2**63 - 1", "LAST_NUMBER: Final = 2**62"),
    JournalFault(
        "memory outlives what the database has forgotten", READER, 'self._written not in ("", written)', "False"
    ),
    # sealing and leaving
    JournalFault(
        "taken rows are sealed again",
        UNSEALED,
        "known, room = memory.known,",
        "known, room = memory.seen - memory.seen,",
    ),
    JournalFault(
        "late commits are not looked for",
        UNSEALED,
        "if self._late(view, known, 1):",
        "if False:",
    ),
    JournalFault(
        "late rows are taken without those above them", UNSEALED, "limit + NEAR_ROWS, above=True)", "limit + NEAR_ROWS)"
    ),
    JournalFault(
        "a batch's number comes again",
        MEMORY,
        "return max([0, *self.batches, *[output.position for output in self.outputs.values()]])",
        "return max([0, *self.batches])",
    ),
    JournalFault(
        "what waits is not left out of what is late",
        "databases/sqlite/publisher.sql",
        "  AND NOT EXISTS (SELECT 1 FROM /* parked */event_log_parked AS kept\n"
        "                  WHERE kept.record_id = waiting./* record_id */record_id)\n",
        "",
    ),
    JournalFault(
        "planned rows are not taken",
        MEMORY,
        "return RowRanges.union([*sealed, *self.planned.values()])",
        "return RowRanges.union(sealed)",
    ),
    JournalFault(
        "what is to come again and is gone is over",
        JOURNAL,
        "                journal.leave(done.gone & records)\n",
        "                pass\n",
    ),
    JournalFault("what left a document leaves anew with its answer", JOURNAL, "done.gone & records)", "done.gone)"),
    JournalFault("gone rows stay", JOURNAL, "            if taken.gone:\n", "            if False:\n"),
    JournalFault("gone rows stay parked", WRITING, '        self.execute("parked_drop_run", runs_of(gone))\n', ""),
    JournalFault(
        "gone rows stay in batches", WRITING, "            if batch.records.meets(gone):\n", "            if False:\n"
    ),
    JournalFault(
        "gone rows stay planned", WRITING, "            if not records.meets(gone):\n", "            if True:\n"
    ),
    JournalFault("holds of gone rows stay", JOURNAL, '                journal.execute("hold_gone")\n', ""),
    JournalFault(
        "parked rows that are gone are not swept",
        JOURNAL,
        '                gone |= journal.numbers("parked_gone", limit=PIECE_ROWS)\n',
        "                pass\n",
    ),
    JournalFault(
        "batches are dropped too early",
        WRITING,
        'first = min(map(attrgetter("position"), self.memory',
        'first = max(map(attrgetter("position"), self.memory',
    ),
    JournalFault(
        "the position stays", JOURNAL, "position = max([row.position, *taken.batches])", "position = row.position"
    ),
    *OF_OUTPUTS,
    *OF_RESTORED,
    # the order of steps
    JournalFault(
        "planned after it was committed",
        CONSUMER,
        "        books.enter_finished(self._journal.plan(self.name, made))\n",
        (
            "        if made.planned and self.output.sink.capabilities.resolves:\n"
            "            self.output.sink.commit(made.plan, made.encoded.documents)\n"
            "        books.enter_finished(self._journal.plan(self.name, made))\n"
        ),
    ),
    # a plan that is entered while the next rows are read
    JournalFault(
        "rows that are being planned are read again",
        MEMORY,
        "planned = {**self.planned, name: RowRanges.union([self.planned.get(name, NO_ROWS), entering])}",
        "planned = {**self.planned}",
    ),
    JournalFault(
        "the next rows are read before a plan parks some",
        "plans.py",
        "        return not (self.again or self.readable)\n",
        "        return True\n",
    ),
    JournalFault(
        "the next rows are read before those that waited are planned",
        "plans.py",
        "if taken.sealed is None or taken.batches or taken.unparked or taken.parked or taken.gone:",
        "if taken.sealed is None:",
    ),
    # transactions
    JournalFault(
        "what is left of a transaction is told alone",
        MAKING,
        "                may_leave=may_leave,\n",
        "                may_leave=False,\n",
    ),
    JournalFault(
        "what was left overtakes a row that came back",
        MAKING,
        "turn += turn % 2 == (number in left_before)",
        "turn = int(number not in left_before)",
    ),
    JournalFault(
        "a transaction ends where another output has passed it",
        VIEW,
        "is_ahead = end not in known or any(end in batch.records for batch in ahead)",
        "is_ahead = end not in known",
    ),
    JournalFault(
        "a transaction ends though rows of it wait",
        VIEW,
        "every = soon.union(mark for mark, _ in waiting)",
        "every = soon",
    ),
    JournalFault(
        "what comes again of a transaction goes on with nothing",
        VIEW,
        "        soon.update(mark for mark, due in waiting if due is not None and due <= now)\n",
        "",
    ),
    JournalFault(
        "how much was told of a transaction is forgotten",
        TARGET,
        "counts = counts_after(self._journal.output(self._output.name).transactions, cut) if cut else None",
        "counts = None",
    ),
    # rows of one number
    JournalFault(
        "one of the rows of a number is published",
        "sources/log/reading.py",
        "    return [*kept.values()], {number: SHARED.format(number) for number in shared}\n",
        "    return [*kept.values()], {}\n",
    ),
    # rows that are parked unread
    JournalFault(
        "parked unread though an output has a batch ahead",
        UNREAD,
        "if memory.batches or memory.reserved_above is not None:",
        "if memory.reserved_above is not None:",
    ),
    JournalFault(
        "parked unread where it waits for one output only",
        UNREAD,
        "waiting = view.waiting_objects(output, waiting)",
        "waiting |= view.waiting_objects(output, waiting)",
    ),
    # targets, and who keeps a log
    JournalFault(
        "files of a first try stay beside those of the second",
        "sinks/plan_folder.py",
        "            if begun:\n                self._begin(hidden)\n",
        "",
    ),
    JournalFault(
        "the rest of a plan that was begun is not shown",
        "sinks/plan_folder.py",
        "if mark is not None and file.belongs_to(mark)]",
        "if False]",
    ),
    JournalFault(
        "hidden files of former owners stay",
        "sinks/plan_folder.py",
        "            file.part.temporary.unlink(missing_ok=True)\n",
        "            pass\n",
    ),
    JournalFault(
        "change files do not know their last plan",
        "sinks/change_files/sink.py",
        "return bool(plan) and plan == self._state.plan",
        "return False",
    ),
    JournalFault(
        "a database does not know its last plan",
        "sinks/database/sink.py",
        "        return replace(now, plan=plan)\n",
        "        return now\n",
    ),
    JournalFault(
        "an answer that cannot be read is an error",
        "sinks/http/sink.py",
        "        retries.append(replace(retry, unread=True))\n",
        "        retries.append(retry)\n",
    ),
    JournalFault(
        "how a row ended before it was set back is kept",
        WRITING,
        "if rows.parts[0][0] <= memory.last_noted:",
        "if False:",
    ),
    JournalFault(
        "what is given up is not told",
        "care/journal.py",
        "            journal.finish_rows(name, RowRanges.of(records), end(records))\n",
        "",
    ),
    JournalFault(
        "rows that a look has read long ago are not looked at again",
        MEMORY,
        "is_new=monotonic() - self.looked_at <= LOOK_SECONDS",
        "is_new=True",
    ),
    JournalFault(
        "what others got while an output was forgotten is not finished",
        CARE,
        "over = RowRanges.union([lacking_rows, *[batch.records for batch in memory.batches.values()]])",
        "over = lacking_rows",
    ),
]


def is_current(fault: JournalFault) -> bool:
    """Return True if the fault's text is in its file exactly once."""
    return (ROOT / fault.path).read_text(encoding="utf-8").count(fault.right) == 1
