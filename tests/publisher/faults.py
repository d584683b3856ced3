"""Faults for the publisher: put in one at a time, random histories must find each; tests/publisher/finding.py does it.

Each names a function and an effect. A fault that is not found says that the histories are missing something; one that
has no place in its function says that this list is.
"""

from __future__ import annotations

from tests.publisher.fault import (
    JournalFault,
    always,
    asks,
    call_gives,
    calls,
    does,
    does_nothing,
    gives,
    loops_over_nothing,
    never,
    query_gives,
    query_without,
    skips,
    without,
)

FAULTS = [
    JournalFault(
        "a faulty table is never tried again", "table_faults:TableFaults.to_try", gives("return", "[]", "list_untried")
    ),
    JournalFault("rows of a table that can be read wait on", "journal:Journal.plan", loops_over_nothing("readable")),
    # what outputs share
    JournalFault("an earlier reading is shared", "decide:Decider._find_known", gives("is_later", "True")),
    JournalFault(
        "that an output got a shared reading is forgotten",
        "decide:Decider.decide",
        gives("_latest", "max(0 if shared else _, self._latest.get(output, 0))"),
    ),
    # statuses and what was said
    JournalFault("the least that was said", "row_outcomes:worst_of", calls("min", "max")),
    JournalFault("left out by one is left out by all", "row_outcomes:worst_of", never("without", "outputs")),
    JournalFault(
        "what was said is not kept for others", "writing:JournalTransaction._keep_answers", skips("answer_make")
    ),
    JournalFault("what others said is not asked", "writing:JournalTransaction.finish_rows", never("any_answers")),
    JournalFault("what was said stays when rows leave", "writing:JournalTransaction.leave", skips("answer_drop")),
    JournalFault(
        "finished although another output has it ahead", "writing:JournalTransaction.finish_rows", never("first")
    ),
    JournalFault("finished although planned", "writing:JournalTransaction.finish_rows", loops_over_nothing("planned")),
    JournalFault("finished although parked elsewhere", "writing:JournalTransaction.finish_rows", never("any_parked")),
    JournalFault("statuses over those of others", "databases/sqlite/log.sql:mark_rows", query_without("/* status */")),
    # memory and errors
    JournalFault("memory outlives an error", "journal:Journal.transaction", skips("forget_memory")),
    JournalFault("memory outlives what others write", "reader:JournalReader.memory_of", without("stamp")),
    JournalFault("resolved outlives an error", "output_target:OutputTarget.forget", does_nothing()),
    JournalFault(
        "a late publisher may write", "databases/sqlite/journal.sql:journal_enter", query_without("value LIKE")
    ),
    # resolve
    JournalFault("resolve: nothing is there", "tables:OnTheWay.split", never("has")),
    JournalFault("resolve: everything is there", "tables:OnTheWay.split", always("has")),
    JournalFault("resolve: refusals are forgotten", "output_target:OutputTarget.resolve", gives("answers", "{}")),
    JournalFault(
        "the target is not taken over",
        "output_target:OutputTarget.ask",
        does("self._output.sink.epoch = 10**9", "open"),
    ),
    # answers
    JournalFault(
        "a document without an answer is over",
        "sending:HandOver._holds",
        does("self._over.append(document)", "_unsent"),
    ),
    JournalFault(
        "a document without an answer goes again at once under another plan",
        "consumer:Consumer._hand_over",
        does("self._enter_answers(now, [], unread, {})", "later"),
    ),
    JournalFault("what is behind an unread document goes", "sending:HandOver._block", skips("_blocked")),
    JournalFault("what is behind a retried document goes", "sending:HandOver._take", never("NEW")),
    JournalFault("what may be at a receiver is freed", "sending:HandOver._free_behind", without("_unsent")),
    JournalFault(
        "documents pass a row that comes again", "output_queue:OutputQueue.look", call_gives("come_again", "{}")
    ),
    JournalFault("what is behind a freed document goes", "sending:HandOver._free_behind", skips("names", "update")),
    JournalFault("what is freed is not parked", "output_target:_park_freed", loops_over_nothing("freed")),
    JournalFault("retried rows are over", "output_target:OutputTarget.finish", loops_over_nothing("again")),
    JournalFault("retried rows have no time", "output_target:OutputTarget.finish", gives("due", "0")),
    JournalFault("what was taken behind a retried change is over", "row_outcomes:judge", without("touch")),
    JournalFault("on_retry = stop reads on", "output_queue:OutputQueue.look", always("until", "due")),
    JournalFault("on_retry = stop sends on", "sending:HandOver._block", skips("_all_blocked")),
    # holds
    JournalFault("a hold between take and plan", "journal:Journal.plan", without("stamp")),
    JournalFault("holds are not asked", "selection:_wait", never("held")),
    JournalFault("holds of what waited are not asked", "selection:_divide", gives("held", "{*_} - waited.keys()")),
    JournalFault("release lets nothing go", "sql/common/journal.sql:parked_released", query_gives("due", "due")),
    JournalFault("hold does not say who has a row", "care/journal:hold", never("read_ranges")),
    # waiting
    JournalFault("times are not looked at", "selection:_divide", never("waits_at")),
    JournalFault(
        "others that wait are not seen", "journal_view:View.others_wait", gives("return", "False", "parked_some")
    ),
    JournalFault("a hold does not part a take", "selection:take", without("any_held")),
    JournalFault("what waits on goes with its object", "journal_view:View.others_wait", never("waits_at")),
    JournalFault("next passes what is parked", "selection:_parking", without("waiting", "EVERY_ROW")),
    JournalFault("what a document holds up takes room", "journal_view:View._leaders", always("holds_up")),
    JournalFault("next passes documents that wait", "selection:Unanswered.blocks", always("documents")),
    JournalFault("waiting does not pass on", "selection:Parking.add", does("self.led.add(name)", "stays")),
    JournalFault("what stays does not block", "selection:Parking.stays", skips("blocked")),
    JournalFault("nobody leads behind a row that went", "journal:Journal.plan", skips("lead")),
    JournalFault("nobody leads behind a row that is gone", "journal:Journal.sweep", skips("parked_lead")),
    JournalFault(
        "what leads leads again",
        "writing:JournalTransaction.lead",
        gives("leaders", "[{'output': name, 'record_id': int(record)} for record, due in first_rows[1:]]"),
    ),
    JournalFault("never given up", "row_outcomes:end_retries", always("most_attempts")),
    JournalFault(
        "attempts are not counted",
        "output_target:OutputTarget.finish",
        does("parking.add(record, name, reason, due, outcome.note, 0)", "parking", "attempts"),
    ),
    JournalFault("held rows look like those behind them", "selection:Parking.add", skips("BEHIND")),
    JournalFault("times of a clock that was set back stay", "journal:Journal.now", never("_clock_went_back")),
    JournalFault("numbers end early", "tables:", gives("LAST_NUMBER", "2**62")),
    JournalFault("memory outlives what the database has forgotten", "reader:JournalReader._stamp", never("_written")),
    # sealing and leaving
    JournalFault(
        "taken rows are sealed again",
        "new_rows:UnsealedRows._next",
        gives("known", "(memory.seen - memory.seen, _[1])", "room"),
    ),
    JournalFault("late commits are not looked for", "new_rows:UnsealedRows._next", never("_late")),
    JournalFault("late rows are taken without those above them", "new_rows:UnsealedRows._next", without("above")),
    JournalFault("a batch's number comes again", "memory:Memory.last_batch", without("position")),
    JournalFault(
        "what waits is not left out of what is late",
        "databases/sqlite/publisher.sql:late_numbers",
        query_without("NOT EXISTS"),
    ),
    JournalFault("planned rows are not taken", "memory:Memory.taken", without("planned", "values")),
    JournalFault("what is to come again and is gone is over", "journal:Journal.done", skips("leave")),
    JournalFault(
        "what left a document leaves anew with its answer",
        "journal:Journal.done",
        does("journal.leave(done.gone)", "leave"),
    ),
    JournalFault("gone rows stay", "journal:Journal.plan", never("gone")),
    JournalFault("gone rows stay parked", "writing:JournalTransaction.leave", skips("parked_drop_run")),
    JournalFault("gone rows stay in batches", "writing:JournalTransaction.leave", never("batch", "meets")),
    JournalFault("gone rows stay planned", "writing:JournalTransaction.leave", loops_over_nothing("planned")),
    JournalFault("holds of gone rows stay", "journal:Journal.sweep", skips("hold_gone")),
    JournalFault("parked rows that are gone are not swept", "journal:Journal.sweep", skips("parked_gone")),
    JournalFault("batches are dropped too early", "writing:JournalTransaction.drop_passed", calls("max", "min")),
    JournalFault("the position stays", "journal:Journal.plan", gives("position", "row.position", "batches")),
    # what is said later
    JournalFault("what is said later is forgotten", "journal:Journal.answer_late", without("ERROR", "SWSSS")),
    JournalFault(
        "what waits for a later answer is told before its rows have gone everywhere",
        "late:Late.enter",
        always("isdisjoint"),
    ),
    # outputs that come and go
    JournalFault("a new output begins at 0", "memory:Memory.new_output", gives("position", "0")),
    JournalFault(
        "a new output begins at the last batch", "memory:Memory.new_output", gives("position", "self.last_batch")
    ),
    JournalFault(
        "a new output does not get what is parked", "writing:JournalTransaction.add_output", skips("parked_copy")
    ),
    JournalFault(
        "a new output does not get what is planned", "writing:JournalTransaction.add_output", gives("waiting", "[]")
    ),
    JournalFault("a forgotten output is waited for", "care/journal:CaredJournal.forget", skips("finish_rows")),
    JournalFault("a forgotten output keeps its rows", "care/journal:CaredJournal.forget", without("parked_forget")),
    JournalFault("the lock is taken with any configuration", "places:admit", always("missing")),
    JournalFault("a paused place keeps others from the lock", "places:admit", without("paused")),
    JournalFault("what others got of a forgotten output is given up", "row_outcomes:worst_of", without("FORGOTTEN")),
    JournalFault(
        "who does not know the tables names objects",
        "care/journal:CareTransaction.objects",
        gives("return", "super().objects(numbers)"),
    ),
    # formats that fail
    JournalFault(
        "a value that a format fails with ends the turn", "encode:KeptWriter.write", does("raise", "refuse_fault")
    ),
    JournalFault("a change that a format fails with is told of no one", "encode:_write_one_by_one", skips("Refusal")),
    # what receivers call objects
    JournalFault("what a receiver calls objects is not entered", "journal:Journal.done", never("associations")),
    JournalFault(
        "what the log knows of a receiver's names is not read", "output_target:OutputTarget.ask", skips("serve")
    ),
    # logs and targets that are restored (decision 62)
    JournalFault("a plan that the log has lost is not adopted", "restored:compare_plans", never("named", "plans")),
    JournalFault(
        "a plan of the same number is taken for the journal's",
        "restored:compare_plans",
        asks("_ and named.number > row.plans", "named", "plans"),
    ),
    JournalFault("a number of an adopted plan comes again", "journal:Journal.adopt", gives("plans", "row.plans")),
    JournalFault("rows that may be at a target go", "journal:Journal.adopt", skips("replace", "restored", "warning")),
    JournalFault(
        "an adopted plan holds less than the one before",
        "journal:Journal.adopt",
        gives("restored", "named.highest", "EVER"),
    ),
    JournalFault("rows of a restored log go behind a hold", "selection:_divide", never("restored")),
    JournalFault(
        "what a process has given to whom nobody can ask is forgotten",
        "output_target:OutputTarget.resolve",
        always("adopt_given"),
    ),
    JournalFault("a target that was restored gets nothing again", "restored:compare_plans", never("lost")),
    JournalFault("rows that a target has lost are not parked for it", "journal:Journal.send_again", skips("park_new")),
    JournalFault(
        "rows that wait are sent again beside", "journal:Journal.send_again", gives("lost", "waiting & known")
    ),
    JournalFault(
        "rows that nobody has are sent again", "journal:Journal.send_again", gives("lost", "waiting - lacking")
    ),
    JournalFault("rows that ended are not sent again", "journal:Journal.send_again", skips("_requeue")),
    JournalFault(
        "how a row ended for others is forgotten when it is sent again",
        "journal:Journal.send_again",
        skips("answer_before"),
    ),
    JournalFault(
        "plans that a target has lost stay its last ones",
        "journal:Journal.send_again",
        does("journal.move(row)", "move"),
    ),
    JournalFault("what was asked before a doubt counts", "journal:Journal._refuse_doubts", never("doubts")),
    # the order of steps
    JournalFault(
        "planned after it was committed",
        "consumer:Consumer._plan",
        does(
            "if made.planned and self.output.sink.capabilities.resolves:\n    self.output.sink.commit(made.plan, made.encoded.documents)\n_",
            "enter_finished",
        ),
    ),
    # transactions
    JournalFault(
        "what is left of a transaction is told alone", "planner:PlanMaker._encode", gives("may_leave", "False", "any")
    ),
    JournalFault(
        "what was left overtakes a row that came back",
        "planner:_one_after_the_other",
        does("turn = int(number not in left_before)", "turn", "left_before"),
    ),
    JournalFault(
        "a transaction ends where another output has passed it", "journal_view:View.going_on", without("ahead")
    ),
    JournalFault(
        "a transaction ends though rows of it wait", "journal_view:View.going_on", gives("every", "soon", "waiting")
    ),
    JournalFault(
        "what comes again of a transaction goes on with nothing",
        "journal_view:View.going_on",
        skips("soon", "waiting", "update"),
    ),
    JournalFault(
        "how much was told of a transaction is forgotten",
        "output_target:OutputTarget.finish",
        gives("counts", "None", "counts_after"),
    ),
    # rows of one number
    JournalFault(
        "one of the rows of a number is published", "sources/log/reading:keep_one_each", loops_over_nothing("shared")
    ),
    # rows that are parked unread
    JournalFault("parked unread though an output has a batch ahead", "blocked_rows:park_unread", without("batches")),
    JournalFault(
        "parked unread where it waits for one output only",
        "blocked_rows:_find_waiting",
        gives("waiting", "waiting | _", "waiting_objects"),
    ),
    # targets, and who keeps a log
    JournalFault(
        "files of a first try stay beside those of the second", "sinks/plan_folder:PlanFolder.show", skips("_begin")
    ),
    JournalFault(
        "the rest of a plan that was begun is not shown",
        "sinks/plan_folder:PlanFolder.finish_former",
        never("mark", "belongs_to"),
    ),
    JournalFault("hidden files of former owners stay", "sinks/plan_folder:PlanFolder.finish_former", skips("unlink")),
    JournalFault(
        "change files do not know their last plan",
        "sinks/change_files/sink:ChangeTableFiles._has",
        gives("return", "False"),
    ),
    JournalFault("a database does not know its last plan", "sinks/database/sink:DatabaseSink._after", always("plan")),
    JournalFault("an answer that cannot be read is an error", "sinks/http/sink:again_later", without("unread")),
    JournalFault(
        "how a row ended before it was set back is kept",
        "writing:JournalTransaction.write_statuses",
        never("last_noted"),
    ),
    JournalFault("what is given up is not told", "care/journal:CaredJournal._give_up_parked", skips("finish_rows")),
    JournalFault(
        "rows that a look has read long ago are not looked at again",
        "memory:Memory.take_looked",
        gives("is_new", "True"),
    ),
    JournalFault(
        "what others got while an output was forgotten is not finished",
        "care/journal:CaredJournal.forget",
        gives("over", "lacking_rows"),
    ),
]
