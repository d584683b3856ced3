"""Where a publisher works: the log, its lock, figures, and statements that are run after a turn.

A stream is captured into a log first, see `streams`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from structlog.stdlib import BoundLogger

from eventlog.config.build import consumer_settings_of, decider_of, log_settings_of
from eventlog.config.settings import LOG, Config
from eventlog.core.errors import ConfigError, EventlogError, SourceError, shorten
from eventlog.core.plugins import BackgroundOrder, BackgroundWork
from eventlog.core.registry import load_offer, offers, streams_plugin
from eventlog.core.seams import Tenure
from eventlog.daemon.health import Gauge, Ledger, PublisherHealth, due_after
from eventlog.daemon.scheduling import Wakeup
from eventlog.daemon.table_watch import TableWatch
from eventlog.daemon.watch import HolderWatch
from eventlog.daemon.workers import Line
from eventlog.delivery.output import Output
from eventlog.delivery.report import Report
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.journal import Journal
from eventlog.publisher.places import admit
from eventlog.publisher.tables import BY_PUBLISHER, write_pause
from eventlog.publisher.traces import BatchTraces
from eventlog.sources.log.flow import OutputLag
from eventlog.sources.log.lock import LogLock
from eventlog.sources.marks import HOLDING, LOOKS_REFUSED, RESUMED, SERVED, TRY_NOW, Marks, as_text
from eventlog.sql.access import find_losses, in_our_words, verbatim
from eventlog.sql.connect import connect, limit_sessions, make_readable_url
from eventlog.sql.findlog import log_columns
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from eventlog.publisher.decide import Decider, Looks
    from eventlog.sources.log.reading import LogSettings


INTERRUPTED_CONVERSION: Final = (
    "This conversion was interrupted, and no new rows go out before its rows are marked."
    " Give its command once more with --mark, or give its rows back: eventlog outputs forget"
)


class LogWork(Struct, eq=False):
    """What is made with the lock, and goes with it."""

    journal: Journal
    ledger: Ledger
    decider: Decider
    lines: list[Line] = []


class Post:
    """The post at a log. One publisher has it at a time; everybody else stands by."""

    def __init__(
        self,
        config: Config,
        vitals: PublisherHealth,
        records: BoundLogger,
        log: Log,
        *,
        name: str,
        address: str,
        looks: bool = False,
        statements: Sequence[str] = (),
    ) -> None:
        self.name = name
        """What is published there, for messages and the journal."""
        self.address = address
        """Where it is, without a password."""
        due = config.publisher.handle_future_events
        self.wakeup = Wakeup(log, due=due, told=self._tell_looks) if looks else None
        """What notices waiting events between two intervals; streams are looked at after every interval."""
        self.more = False
        """Whether there may be more in a stream than was captured."""
        self._statements = statements
        """Run after a turn in which documents went out; a stream's log has none."""
        settings = config.publisher
        self._config, self._vitals, self._records = config, vitals, records
        self.engine, self._names = log.engine, log.names
        # A publisher that hangs does not keep the lock.
        self.lock = LogLock(log, settings.lease, vitals.is_alive)
        self._watch = HolderWatch(self.lock, due=due)
        self._gauge = Gauge(log, settings)
        self._tables = TableWatch(log, follow=settings.follow, looked=vitals.note_triggers, journal=records)
        self._next_look = self._next_sweep = 0.0
        self._looking = RLock()
        self._work: LogWork | None = None
        self._traces = BatchTraces()
        self._given: dict[str, str] = {}
        """The last plan of each output, which the log may lose while this process lives."""

    @property
    def tenure(self) -> Tenure | None:
        """Return the tenure of our log; None without the lock."""
        return self.lock.tenure

    @property
    def work(self) -> LogWork:
        """Return what `lines` has made with the lock."""
        assert self._work is not None
        return self._work

    @property
    def taken(self) -> bool:
        """Return True while this publisher has the lock."""
        return self.tenure is not None

    def take(self, outputs: Sequence[Output]) -> bool:
        """Take the log for these outputs if it is free; ConfigError where others have a place in it."""
        if self.lock.tenure is not None:
            return self.lock.take()
        named = [(output.name, output.former_names) for output in outputs]
        has_it = self.lock.take(partial(admit, log=self.lock.log, outputs=named))
        if has_it:
            self._watch.forget()
        else:
            # A standby says so now, and not on the day when it is needed.
            with self.lock.log.moment() as connection:
                admit(connection, self.lock.log, named)
        return has_it

    def wait_for_lock(self) -> None:
        """Log who holds the lock and whether it makes progress."""
        self._watch.look(self.name, self._vitals, self._records)
        self._gauge.measure(self._vitals)

    def confirm(self) -> None:
        """Raise OccupiedError if we have lost the lock; call it before writing to an output.

        No query is made unless this process may have slept longer than its lease.
        """
        self.lock.confirm_lease()

    def leave(self) -> None:
        """Enters the last figures and gives it to whoever waits."""
        try:
            if self.lock.taken and self._work is not None:
                # While it has the lock still: afterwards these marks are another publisher's.
                self._work.ledger.enter(now=True)
        finally:
            self.lock.leave()

    def drop(self) -> None:
        """Drop connections, perhaps broken, and with them the post."""
        # Where it could not be left: no thread renews the lease of who has ended.
        self.lock.drop()
        self._work = None
        self._traces.end()
        if self.wakeup is not None:
            self.wakeup.close()
        self.engine.dispose()

    def guard(self) -> AbstractContextManager[None]:
        """Convert errors inside to ours; transactions do so by themselves."""
        return in_our_words(self.engine, f"The {self.name}")

    def lines(self, outputs: Sequence[Output]) -> list[Line]:
        """Make the lines of work, with the tables as they look now; to be called with the lock."""
        names = [output.name for output in outputs]
        with self.guard():
            self.lock.log.check()
            decider = self._new_decider()
            journal = self._new_journal(decider)
            journal.serve([(output.name, output.former_names) for output in outputs])
            self._report_others(journal, names)
            with self.lock.log.transaction() as connection:
                for level, found, mend in find_losses(connection, self.lock.log.dialect):
                    if level == "failure":
                        self._records.warning("may_lose", why=found, hint=mend)
                self.lock.mark(connection, SERVED, as_text(names))
                self._keep_looks(connection, None)
                ledger = Ledger(self.lock, self._vitals, journal)
                ledger.begin(connection)
        self._work = LogWork(journal, ledger, decider)
        if self.wakeup is not None:
            self.wakeup.seen = journal
        settings = consumer_settings_of(self._config)
        for output in outputs:
            consumer = Consumer(
                journal,
                output,
                decider,
                settings,
                confirm=self.lock.confirm_lease,
                pulse=self._vitals.note_alive,
                traces=self._traces,
                given=self._given,
            )
            self._work.lines.append(Line(consumer, self._vitals, self._look_again))
        return self._work.lines

    def _tell_looks(self, why: str | None) -> None:
        """Log why looks for new rows are refused, and keep it for `check`; None when they are not any more."""
        if why is None:
            self._records.info("looks_again")
        else:
            self._records.warning("looks_refused", error=why)
        # What is wrong with the log as well is noticed by the turn.
        with suppress(SourceError), self.lock.log.transaction() as connection:
            self._keep_looks(connection, why)

    def _keep_looks(self, connection: Connection, why: str | None) -> None:
        marks = Marks(self.lock.log)
        if why is not None:
            marks.set(connection, LOOKS_REFUSED, why)
        elif marks.get(connection, LOOKS_REFUSED) is not None:
            marks.clear(connection, LOOKS_REFUSED)

    def _report_others(self, journal: Journal, names: Sequence[str]) -> None:
        """Log the places this publisher does not serve: conversions and paused outputs."""
        with journal.reading() as view:
            others = [row for row in view.memory.outputs.values() if row.name not in names]
        for row in others:
            if row.is_conversion:
                self._records.error("conversion_interrupted", conversion=row.name, hint=INTERRUPTED_CONVERSION)
            else:
                self._records.warning("output_not_served", output=row.name, paused=row.paused)

    def capture(self) -> None:
        """Capture the next part of a stream; a log is filled by others."""

    def captures_on(self) -> bool:
        """Capture more if there may be more; return True if there may have been."""
        may_be = self.more
        if may_be:
            self.capture()
        return may_be

    def sweep(self) -> bool:
        """Forget rows somebody has deleted or given their status; return True if there were any."""
        journal, began = self.work.journal, monotonic()
        if began < self._next_sweep or not journal.anything_waits:
            return False
        swept = journal.sweep()
        # A million may wait.
        self._next_sweep = due_after(began)
        return swept

    def lags(self) -> Mapping[str, OutputLag]:
        """Measure how far outputs are behind the others."""
        from eventlog.publisher.flow import JournalLook  # asked only where an output has a bound

        with self.lock.log.transaction() as connection:
            return JournalLook(connection, self.lock.log, self._config.publisher).distances

    def pause(self, name: str, why: str) -> None:
        """Lets nothing go to an output until somebody resumes it."""
        self.work.journal.pause(name, write_pause(BY_PUBLISHER, why))

    def list_wanted_now(self, names: Sequence[str]) -> Sequence[str]:
        """Return the outputs to be tried at once on request; each is reported once."""
        marks = Marks(self.lock.log)
        with self.lock.log.transaction() as connection:
            wanted = [name for name in names if marks.get(connection, f"{TRY_NOW}{name}") is not None]
            if wanted:  # they are meant for who has the lock
                self.lock.assure(connection)
            # In the transaction that read it, so that a wish is heard once.
            for name in wanted:
                marks.clear(connection, f"{TRY_NOW}{name}")
        return wanted

    def caught_up(self, name: str) -> None:
        """Forgets how far an output was behind when somebody resumed it."""
        with self.lock.log.transaction() as connection:
            Marks(self.lock.log).lock(connection, HOLDING)
            self.lock.assure(connection)
            Marks(self.lock.log).clear(connection, f"{RESUMED}{name}")

    def _look_again(self, former: Decider) -> Decider:
        """Look at the tables again, unless another line has looked since."""
        with self._looking:
            work = self.work
            if work.decider is former:
                self._see_history()
                work.decider = self._see_tables(work)
            return work.decider

    def _new_journal(self, decider: Decider) -> Journal:
        return Journal(self.lock.log, self.lock, self._log_settings(), decider.round.catalog)

    def _log_settings(self) -> LogSettings:
        return log_settings_of(self._config)

    def _new_decider(self, looks: Looks | None = None) -> Decider:
        """Make the rules, with the tables as they look now."""
        return decider_of(self.engine, self._names, self._config, looks)

    def _see_history(self) -> None:
        """Enter tables' present shapes in the history."""
        self._tables.look()

    def _see_tables(self, work: LogWork) -> Decider:
        self.lock.log.check()
        decider = self._new_decider(work.decider.looks)
        work.journal.look(decider.round.catalog)
        return decider

    def follow_tables(self) -> None:
        """Check once a poll if triggers fit their tables, and follow if allowed."""
        if monotonic() < self._next_look:
            return
        with self._looking:
            if self._tables.look():
                work = self.work
                try:
                    work.decider = self._see_tables(work)
                except EventlogError as error:
                    # It goes on with the tables as it knew them.
                    self._records.warning("tables_not_seen", error=str(error))
                for line in work.lines:
                    line.consumer.decider = work.decider
            self._next_look = monotonic() + self._config.publisher.polling_interval

    def finish_turn(self, report: Report) -> None:
        """Finish a turn: enter figures and, where documents went out, run the post-poll statements."""
        ledger = self.work.ledger
        ledger.finished += report.finished
        if not report.documents:
            return
        ledger.enter()
        for statement in self._statements:
            try:
                with self.lock.log.transaction() as connection:
                    connection.execute(verbatim(statement))
            except SourceError as error:
                if error.may_pass:
                    raise
                # It stops nobody: the rows are settled.
                self._records.error("post_poll_failed", statement=shorten(statement), error=str(error))

    def idle(self) -> None:
        """Take figures, as nothing is waiting or can be delivered."""
        self._gauge.measure(self._vitals)
        self.work.ledger.enter()

    def works(self) -> list[BackgroundWork]:
        """List the work to do beside publishing while this publisher has the lock."""
        order = BackgroundOrder(
            config=self._config,
            names=self._names,
            journal=self._records,
            vitals=self._vitals,
            mark=self.lock.mark,
        )
        plugins = [load_offer(offer) for offer in offers("background")]
        return [plugin.build(order) for plugin in plugins if plugin.wanted(self._config)]


def post_of(
    config: Config,
    vitals: PublisherHealth,
    records: BoundLogger,
    engine: Engine | None,
) -> Post:
    """Make the post, without the lock; `engine` is a log's database where it is open already."""
    source, settings = config.source, config.publisher
    if source.kind != LOG:
        post: Post = streams_plugin().post(config, vitals, records)
        return post
    if engine is None:
        if not source.url:
            raise ConfigError("source.url is missing; it names the database.")
        engine = connect(source.url)
        limit_sessions(engine, source.statement_timeout, source.lock_timeout, settings.lease)
    try:
        with in_our_words(engine, f"The event log {source.log}"):
            log = Log(engine, log_columns(engine, source.wanted_names, source.columns))
    except EventlogError:
        engine.dispose()
        raise
    return Post(
        config,
        vitals,
        records,
        log,
        name=f"event log {log.name}",
        address=make_readable_url(engine.url),
        looks=settings.wake_up,
        statements=settings.post_poll_statements,
    )
