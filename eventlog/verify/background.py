"""The publisher's regular proofs: each table of each output, as often as `verify.every` says, in a
thread beside publishing.

Law: a table is compared between two looks at the flag that ends it, and what was found is kept only
by who has the lock. What fails is noted in one sentence, kept beside the last result, and tried
again.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event as Flag
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.care.proofs import MOST_TABLES, read_proofs, write_proofs
from eventlog.compare.pace import Pace, Window
from eventlog.config.build import name_of
from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config
from eventlog.core.errors import DataError, EventlogError, OccupiedError, UsageError, shorten
from eventlog.core.plugins import BackgroundOrder, BackgroundPlugin
from eventlog.core.proofs import LastProof
from eventlog.core.secrets import make_readable
from eventlog.policies.settings import steps_of
from eventlog.sources.marks import VERIFIED, Marks
from eventlog.sql.connect import connect, limit_sessions, reading_engine
from eventlog.sql.dialect import dialect_of
from eventlog.sql.findlog import locate_log
from eventlog.sql.log import Log
from eventlog.verify.breaking import Breaker
from eventlog.verify.expected import VerifiedTable
from eventlog.verify.opening import target_of
from eventlog.verify.proof import MOST_CHARACTERS, Limits, last_proof
from eventlog.verify.report import summary
from eventlog.verify.schedule import RETRY_SECONDS, Schedule
from eventlog.verify.settings import settings_of
from eventlog.verify.verifying import Verifier

WAKE_SECONDS: Final = 60.0
"""Seconds after which a sleeper looks at the clock on the wall."""

TOO_MANY: Final = f"Only {MOST_TABLES:,} tables are compared regularly."

NAMED_ROWS: Final = 0
"""A regular proof names no difference: `eventlog verify` does."""


class ProofsStopped(Exception):  # noqa: N818  # it is no error
    """The publisher ends, or has lost its lock."""


class RegularPace(Pace):
    """The pace of a proof that can be ended before each range, and while it is held back."""

    def __init__(
        self,
        rows_per_second: float,
        window: Window | None,
        pause: Callable[[float], object],
    ) -> None:
        super().__init__(rows_per_second, window, sleep=pause)
        self._pause = pause

    def enter(self) -> None:
        self._pause(0)
        super().enter()


class RegularProofs:
    """Compares what is due, round after round. `clock` is seconds since 1970."""

    def __init__(self, order: BackgroundOrder, clock: Callable[[], float] = time.time) -> None:
        self._config: Config = order.config
        self._settings = settings_of(order.config)
        self._order = order
        self._clock = clock
        self._ended = Flag()
        self._breaker = Breaker()
        settings = self._settings
        self._schedule = Schedule(every=settings.seconds, window=settings.window)
        self._pace = RegularPace(settings.rows_per_second, settings.window, self.pause)
        self._troubles: dict[str, str] = {}
        self._proofs: dict[tuple[str, str], LastProof] = {}

    def run(self) -> None:
        try:
            engine = self._breaker.watch(connect(self._config.source.url))
            source = self._config.source
            timeouts = (source.statement_timeout, source.lock_timeout)
            limit_sessions(engine, *timeouts)
            if source.reader:
                # One engine for each URL: whoever reads later gets this one, which is watched.
                self._breaker.watch(reading_engine(engine, source.reader, *timeouts))
            try:
                while True:
                    self._rest(self._round(engine))
            finally:
                engine.dispose()
        # Somebody asked for the end, or has the lock by now: neither is a fault.
        except (ProofsStopped, OccupiedError):
            return

    def stop(self) -> None:
        self._ended.set()
        self._breaker.break_off()

    def pause(self, seconds: float) -> None:
        """Wait so long; raise ProofsStopped if no longer worthwhile."""
        if self._ended.wait(seconds):
            raise ProofsStopped

    def _rest(self, seconds: float) -> None:
        """Wait by the wall clock, by which proofs are due; it may be set meanwhile."""
        began = self._clock()
        # Below 0 the clock was set back: then nobody knows how long it has been.
        while 0 <= (passed := self._clock() - began) < seconds:
            self.pause(min(seconds - passed, WAKE_SECONDS))

    # --- a round ----------------------------------------------------------------------------------

    def _round(self, engine: Engine) -> float:
        """Compare due tables at every output; return seconds until the next round."""
        try:
            with engine.connect() as connection:
                log = Log(engine, locate_log(connection, self._order.names))
            # What was found before, perhaps by another publisher.
            with log.transaction() as connection:
                text = Marks(log).get(connection, VERIFIED)
            self._proofs = {(last.output, last.table): last for last in read_proofs(text)}
            self._order.vitals.note_proofs([*self._proofs.values()])
            closed = self._find_closed_seconds()
            if closed > 0:
                return closed
            wanted = {pair for output in self._outputs() for pair in self._at_output(log, output)}
            # Tables and outputs that are not compared any more are forgotten.
            if not wanted.issuperset(self._proofs):
                self._proofs = {pair: last for pair, last in self._proofs.items() if pair in wanted}
                self._keep(log)
        except (ProofsStopped, OccupiedError):
            raise
        except Exception as error:  # noqa: BLE001  # publishing goes on, and another round comes
            self._fail("", error)
        else:
            self._troubles.pop("", None)
        rest = self._schedule.sleep(self._proofs.values(), self._clock())
        if self._troubles:
            return min(rest, RETRY_SECONDS)
        return rest

    def _find_closed_seconds(self) -> float:
        """Return seconds until the day's window opens."""
        return self._schedule.find_closed_seconds(dt.datetime.fromtimestamp(self._clock()))

    def _at_output(self, log: Log, output: OutputConfig) -> Iterator[tuple[str, str]]:
        """Compare due tables at an output; yield all compared there. A failure leaves the others."""
        name = name_of(output)
        # What was compared before, for an output that does not answer today.
        known = [pair for pair in self._proofs if pair[0] == name]
        try:
            with self._open_verifier(log, output) as verifier:
                tables = {table.called: table for table in self._tables(verifier)}
                # All are kept as one text in the database, which has room for so many.
                others = sum(output != name for output, _ in self._proofs)
                known = [(name, called) for called in [*tables][: MOST_TABLES - others]]
                proofs = [self._proofs.get(pair) or LastProof(output=name, table=pair[1]) for pair in known]
                for former in self._schedule.due(proofs, self._clock()):
                    if self._find_closed_seconds() > 0:
                        break
                    self._prove(log, verifier, tables[former.table], former)
            if len(known) == len(tables):
                self._troubles.pop(name, None)
            else:
                hint = "Name those that matter in verify.tables."
                self._fail(name, DataError(TOO_MANY, hint=hint))
        except (ProofsStopped, OccupiedError):
            raise
        except Exception as error:  # noqa: BLE001  # as in a round
            self._fail(name, error)
        yield from known

    def _prove(
        self,
        log: Log,
        verifier: Verifier,
        table: VerifiedTable,
        former: LastProof,
    ) -> None:
        """Compare one table, and keep the result."""
        self.pause(0)
        journal = self._order.journal.bind(output=former.output, table=table.called)
        try:
            verified = verifier.verify(table)
            if verified.proof.problem:
                self.pause(0)  # a statement that was broken off has failed for no other reason
            last = last_proof(verified.proof, former.output, self._clock())
            sentence = summary(verified)
        except ProofsStopped:
            raise
        except Exception as error:  # noqa: BLE001  # as in a round
            # A statement that was broken off has failed for no other reason.
            self.pause(0)
            sentence = _in_words(error)
            reason = shorten(sentence, MOST_CHARACTERS)
            last = replace(former, error=reason, failed_at=self._clock())
        if last.at is None:
            # It could not be compared: what was found before stays, with the reason beside it.
            last = replace(former, error=last.error, failed_at=last.failed_at)
        self._proofs[former.output, former.table] = last
        self._keep(log)
        if last.error:
            journal.warning("verify_failed", error=sentence)
        elif last.equal:
            journal.info("verified", said=sentence)
        else:
            journal.warning("verify_differs", said=sentence)

    # --- what is compared -------------------------------------------------------------------------

    def _outputs(self) -> Sequence[OutputConfig]:
        named = self._settings.outputs
        return [output for output in self._config.output if not named or name_of(output) in named]

    @contextmanager
    def _open_verifier(self, log: Log, output: OutputConfig) -> Iterator[Verifier]:
        engines: list[Engine] = []

        def open_engine(url: str) -> Engine:
            engines.append(self._breaker.watch(connect(url)))
            return engines[-1]

        settings = self._settings
        try:
            target = target_of(
                output,
                open_engine,
                mirrors=settings.mirrors,
                into=settings.into or None,
                suffix=settings.suffix,
                log=log,
            )
            yield Verifier(
                log.engine,
                log,
                self._config,
                target,
                output=name_of(output),
                steps=steps_of(output, self._config.policy),
                pace=self._pace,
                limits=Limits(shown=NAMED_ROWS),
                sleep=self.pause,
            )
        finally:
            for engine in engines:
                engine.dispose()

    def _tables(self, verifier: Verifier) -> list[VerifiedTable]:
        source = self._config.source
        schema = source.schema if dialect_of(source.url).schemas else None
        tables = verifier.sources(self._settings.tables, schema)
        # Without a key nothing can be compared, and nobody needs to be told so each day.
        return [table for table in tables if not table.table.whole_row]

    # --- what was found ---------------------------------------------------------------------------

    def _keep(self, log: Log) -> None:
        with log.transaction() as connection:
            self._order.mark(connection, VERIFIED, write_proofs(self._proofs.values()))
        self._order.vitals.note_proofs([*self._proofs.values()])

    def _fail(self, output: str, error: Exception) -> None:
        """Report once the error that prevents comparing an output."""
        self.pause(0)
        # Nobody asked for an output that cannot be read back.
        if isinstance(error, UsageError) and not self._settings.outputs:
            return
        sentence = _in_words(error)
        if self._troubles.get(output) != sentence:
            facts = {"error": sentence}
            if output:
                facts = {"output": output, **facts}
            self._order.journal.warning("verify_failed", **facts)
        self._troubles[output] = sentence


def _in_words(error: Exception) -> str:
    """Write an error in one sentence."""
    if isinstance(error, EventlogError):
        return str(error)
    return make_readable(f"{type(error).__name__}: {error}".rstrip(".") + ".")


def _is_wanted(config: Any) -> bool:
    return bool(settings_of(config).every)


VERIFY = BackgroundPlugin(wanted=_is_wanted, build=RegularProofs)
