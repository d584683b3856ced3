"""Measures the log for the page from a thread of its own: the cheap figures often, what reads every
row seldom. And what the page is shown of that: the outputs, named without opening one and without a
secret, and curves that outlive a restart.

Law: measuring takes at most a fiftieth of the time, or is done twice a minute, and counting takes at
most a twentieth, and only while somebody looks, so that the publisher and the database do not notice
the page. What an output does is seen at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event as Flag
from threading import Lock, Thread
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.care.flow import note_of_hold, rate_of, waiting_for
from eventlog.care.listing import one_row
from eventlog.care.status import LastError, facts, publishing
from eventlog.config.build import former_names_of, log_catalog_of, name_of
from eventlog.config.outputs import OutputConfig, default_output, plugin_of
from eventlog.config.settings import LOG, Config
from eventlog.core.errors import EventlogError
from eventlog.core.plugins import PageOrder
from eventlog.core.registry import load_offer, offers
from eventlog.core.secrets import bare_address, mask_secrets
from eventlog.daemon.health import adjust_own_flow
from eventlog.delivery.output import OutputState, OutputStates, failing, read_output_states
from eventlog.durable_files import write_file
from eventlog.explain.masking import Mask, mask_of
from eventlog.explain.states import OutputPlace, read_places
from eventlog.policies.settings import steps_of
from eventlog.publisher.flow import WaitingTable, read_flow, read_unread_tables
from eventlog.sources.log.lock import look_at
from eventlog.sources.marks import OUTPUTS, Marks
from eventlog.sql.connect import make_readable_url
from eventlog.sql.log import Log
from eventlog.web.first_steps import command_options
from eventlog.web.reading import (
    OLD_SECONDS,
    RANGES,
    History,
    OutputSample,
    OutputView,
    PagePart,
    PageReading,
    ReasonCount,
    Sample,
    UnreadTable,
)
from eventlog.web.settings import holds_other_things, settings_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from eventlog.daemon.health import PublisherHealth
    from eventlog.sql.names import LogNames

Said = TypeVar("Said")


def name_outputs(config: Config) -> tuple[OutputView, ...]:
    """Describe each output, with the name used in its notes."""
    return tuple(
        OutputView(
            name=output.name or _place(output),
            noted=name_of(output),
            former_names=former_names_of(output),
            format=str(output.format),
        )
        for output in config.output or (default_output(),)
    )


def with_output_states(
    views: Sequence[OutputView],
    states: OutputStates,
    places: Mapping[str, OutputPlace],
) -> tuple[OutputView, ...]:
    """Add to the outputs their states and their places in the journal."""
    return tuple(
        replace(
            view,
            state=_of(view, states) or OutputState(),
            on_the_way=0 if (progress := _of(view, places)) is None else progress.on_the_way,
            paused=None if progress is None else progress.paused,
        )
        for view in views
    )


def _of(output: OutputView, by_name: Mapping[str, Said]) -> Said | None:
    """Look up an output by its name, else by a former one."""
    # Its own name first, for what stands under a former one may be older.
    names = (output.noted, *output.former_names)
    return next((by_name[name] for name in names if name in by_name), None)


def _place(output: OutputConfig) -> str:
    url = getattr(output, "url", None)
    if isinstance(url, str):
        return f"{output.sink} {mask_secrets(bare_address(url))}"
    return mask_secrets(plugin_of(output).place(output))


def parts_of(order: PageOrder) -> Iterator[PagePart]:
    """Yield the parts of the first page, ours first; a failing part shows its error."""
    # Ours first: False sorts before True.
    for offer in sorted(offers("page"), key=lambda offer: not offer.is_ours):
        title = offer.name
        try:
            plugin = load_offer(offer)
            title = plugin.title
            table = plugin.part(order)
            if table is not None:
                yield PagePart(title=title, table=table)
        except EventlogError as error:
            yield PagePart(title=title, trouble=str(error))
        except Exception as error:  # noqa: BLE001  # a stranger's fault, and the page shows the rest
            trouble = f"The {offer.description} failed: {type(error).__name__}: {error}"
            yield PagePart(title=title, trouble=trouble)


ENTRY_SECONDS: Final = 300.0
"""Seconds between two entries."""


class _Entry(Struct, frozen=True, kw_only=True):
    """What stands in the file: which log it is, and its samples."""

    database: str
    log: str
    history: History


class HistoryFile:
    """Keeps the samples of one log in a file; without a path in nothing. What cannot be read or
    written is no trouble; a file with something else is left alone.
    """

    def __init__(self, path: str | None, database: str, log: str) -> None:
        self._path = None if path is None else Path(path)
        self._database, self._log = database, log
        self._entered = monotonic()

    def read(self) -> History:
        """Read the saved samples of this log."""
        if self._path is None:
            return History()
        try:
            entry = msgspec.json.decode(self._path.read_bytes(), type=_Entry)
        except (OSError, msgspec.MsgspecError):
            return History()
        # Another log, or another version of eventlog with other ranges, has left it.
        is_own = (entry.database, entry.log) == (self._database, self._log)
        if is_own and len(entry.history.levels) == len(RANGES):
            return entry.history
        return History()

    def enter(self, history: History, *, now: bool = False) -> None:
        """Writes the samples, if it is time for that or must be `now`."""
        if self._path is None or not (now or monotonic() - self._entered >= ENTRY_SECONDS):
            return
        self._entered = monotonic()
        if holds_other_things(self._path):
            return
        entry = _Entry(database=self._database, log=self._log, history=history)
        with suppress(OSError):
            write_file(self._path, msgspec.json.encode(entry))


SAMPLE_SECONDS: Final = 5.0
"""Seconds between two samples."""

MASK_SECONDS: Final = 30.0
"""Seconds for which the tables are believed to be as they were; what is not known is hidden."""

COUNT_SECONDS: Final = 30.0
"""Seconds between two counts."""

LOOKED_SECONDS: Final = 60.0
"""Seconds for which somebody who has looked is taken to look on."""


class Collector:
    """The latest reading, and how it is come by; `version` changes with it."""

    def __init__(
        self,
        engine: Engine,
        names: LogNames,
        config: Config,
        vitals: PublisherHealth | None = None,
        history: History | None = None,
    ) -> None:
        self.log = Log(engine, names)
        self._names = names
        self._vitals = vitals
        self._outputs = name_outputs(config)
        self._config = config
        self._settings = config.publisher
        self._lock = Lock()
        self._woken, self._ended = Flag(), Flag()
        # Nobody has looked yet, and the first count is due at once.
        self._looked = self._count_at = float("-inf")
        self._masked_by: tuple[float, Mask | None] | None = None
        database = make_readable_url(engine.url)
        self._file = HistoryFile(settings_of(config).history, database, self.log.name)
        self._documents: dict[str, tuple[float, int]] = {}
        self._sampled_failing: set[str] = set()
        is_log, url = config.source.kind == LOG, config.source.url
        self._reading = PageReading(
            log=self.log.name,
            database=database,
            now=time(),
            history=self._file.read() if history is None else history,
            commands=command_options(url, database) if is_log else None,
        )
        self.version = 0
        self._thread = Thread(target=self._run, name="eventlog-web-collector", daemon=True)

    def start(self) -> None:
        """Measures from now on."""
        self._thread.start()

    def end(self) -> None:
        """Asks to measure no more."""
        self._ended.set()
        self._woken.set()

    def close(self) -> None:
        """Measures no more."""
        self.end()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def closed(self) -> bool:
        """Return True if nothing new will come."""
        return self._ended.is_set()

    def reading(self) -> PageReading:
        """Return the current reading and note that somebody looked."""
        self._looked = monotonic()
        # The first visitor should not wait for the next sample to see counts.
        if self._reading.counted is None:
            self._woken.set()
        with self._lock:
            reading = replace(self._reading, now=time())
        if self._vitals is None:
            return reading
        vitals = self._vitals.reading()
        flow = None if reading.flow is None else adjust_own_flow(reading.flow, vitals)
        # An output that has failed since is not shown as it was.
        places = tuple(replace(view, state=vitals.outputs.get(view.noted, view.state)) for view in reading.places)
        return replace(reading, flow=flow, loop=vitals, places=places)

    @property
    def named(self) -> tuple[OutputView, ...]:
        """Return the outputs of the configuration, before anybody has looked how they stand."""
        return self._outputs

    @property
    def outputs(self) -> list[str]:
        """Return the configured outputs by the name used in their notes."""
        return [output.noted for output in self._outputs]

    def output(self, noted: str) -> OutputView | None:
        """Return an output by the name used in its notes; None if not configured."""
        known = next((output for output in self._outputs if output.noted == noted), None)
        return self._reading.output(noted) or known

    @property
    def history(self) -> History:
        return self._reading.history

    def mask(self) -> Mask | None:
        """Return the mask for values all policies hide, by a recent look at the tables."""
        outputs, policies = self._config.output, self._config.policy
        # An output without a policy hides nothing.
        if not outputs or not all(steps_of(output, policies) for output in outputs):
            return None
        if self._masked_by is None or monotonic() - self._masked_by[0] > MASK_SECONDS:
            catalog = log_catalog_of(self.log.engine, self._names, self._config)
            self._masked_by = monotonic(), mask_of(self._config, catalog)
        return self._masked_by[1]

    def note_change(self) -> None:
        """Note that a part shown beside the reading has changed."""
        with self._lock:
            self.version += 1

    def hurry(self) -> None:
        """Measures and counts at once, for rows were changed."""
        self._count_at = float("-inf")
        self._woken.set()

    def measure(self) -> None:
        """Takes a sample, and counts if it is time for that and somebody looks."""
        # Before the sample: what begins to fail while it is taken wants another one.
        self._sampled_failing = self._failing()
        try:
            self._sample()
            if monotonic() - self._looked < LOOKED_SECONDS and monotonic() >= self._count_at:
                self._count()
        except EventlogError as error:
            self._publish(replace(self._reading, trouble=str(error)))
        except Exception as error:  # noqa: BLE001 - what one look meets must not end all others
            trouble = f"{type(error).__name__}, which is a fault of eventlog."
            self._publish(replace(self._reading, trouble=trouble))

    def _run(self) -> None:
        while True:
            began = monotonic()
            # Before both looks: what wakes us meanwhile wants another one, and the end is one too.
            self._woken.clear()
            if self._ended.is_set():
                break
            self.measure()
            # Somebody who comes, and rows that are changed, do not wait; but never without a pause
            # in between.
            self._ended.wait(min(1.0, SAMPLE_SECONDS))
            self._file.enter(self._reading.history)
            took = monotonic() - began
            # A slow database is asked so seldom that measuring takes a fiftieth of the time.
            self._rest(max(SAMPLE_SECONDS, min(50 * (took - 1.0), OLD_SECONDS / 2)))
        self._file.enter(self._reading.history, now=True)

    def _rest(self, seconds: float) -> None:
        """Wait until the next sample, or while what fails is what failed before the last one."""
        until = monotonic() + seconds
        while self._failing() == self._sampled_failing and monotonic() < until:
            if self._woken.wait(min(1.0, SAMPLE_SECONDS)):
                return

    def _failing(self) -> set[str]:
        """Return the outputs failing in this publisher; `""` for the publisher itself."""
        if self._vitals is None:
            return set()
        vitals = self._vitals.reading()
        failing_outputs = {name for name, state in vitals.outputs.items() if state.is_failing}
        return failing_outputs | ({""} if vitals.state == "failing" else set())

    def _sample(self) -> None:
        with self.log.moment() as connection:
            # As the publisher here sees them, else as whoever published last has left word.
            present = {} if self._vitals is None else self._vitals.reading().outputs
            states = {**read_output_states(Marks(self.log).get(connection, OUTPUTS)), **present}
            places = read_places(connection, self.log)
            flow = read_flow(connection, self.log, self._settings, failing=failing(states))
            held = None if flow.first_held is None else note_of_hold(connection, self.log, flow.first_held)
            unread = read_unread_tables(connection, self.log) if flow.parts.suspended else {}
        now = time()
        views: list[OutputView] = []
        for view in with_output_states(self._outputs, states, places):
            # How many documents it takes a second, by its count and the one of the sample before.
            count = view.state.documents
            at, before = self._documents.get(view.noted, (now, count))
            self._documents[view.noted] = now, count
            # Less than before where the publisher has begun to count anew.
            views.append(replace(view, rate=max(0, count - before) / (now - at) if now > at else None))
        behind = {
            view.noted: lag.rows
            for view in views
            if (lag := waiting_for(flow, view.noted, failing=view.state.is_failing)) is not None
        }
        sample = Sample(
            at=now,
            waiting=flow.parts.total,
            oldest=flow.oldest,
            lag=flow.lag,
            rate=rate_of(flow).per_second,
            outputs={
                view.noted: OutputSample(behind=behind.get(view.noted, 0), rate=view.rate or 0.0) for view in views
            },
        )
        on_the_way = sum(progress.on_the_way for progress in places.values())
        self._publish(
            replace(
                self._reading,
                history=self._reading.history.with_sample(sample),
                on_the_way=on_the_way,
                flow=flow,
                places=tuple(views),
                gone=None if flow.publishing else publishing(look_at(self.log)),
                held=held,
                unread={name: self._unread(table) for name, table in unread.items()},
                trouble=None,
            )
        )

    def _unread(self, table: WaitingTable) -> UnreadTable:
        # Of the row only its time is shown, so nearly nothing of its values is read.
        row = one_row(self.log, table.first, width=1)
        time_of_row = None if row is None else row.event_time
        return UnreadTable(reason=table.reason, note=mask_secrets(table.note), row=table.first, time=time_of_row)

    def _mask_error(self, error: LastError | None) -> LastError | None:
        if error is None or (mask := self.mask()) is None:
            return error
        row = one_row(self.log, error.record_id)
        return replace(error, note=None if row is None else mask.row(row).note)

    def _count(self) -> None:
        from eventlog.capture.track import trigger_states

        began = monotonic()
        counted = facts(self.log.engine, self._names, self._settings)
        counted = replace(counted, last_error=self._mask_error(counted.last_error))
        triggers = tuple(trigger_states(self.log.engine, self._names))
        with self.log.transaction() as connection:
            rows = self._ask(connection, "count_reasons")
        reasons = tuple(
            ReasonCount(status=status, reason=reason, rows=int(count)) for status, reason, count in rows if int(count)
        )
        order = PageOrder(config=self._config, engine=self.log.engine, triggers=triggers)
        parts = tuple(parts_of(order))
        self._publish(
            replace(
                self._reading,
                facts=counted,
                reasons=reasons,
                triggers=triggers,
                parts=parts,
                counted=time(),
            )
        )
        # A large log is counted so seldom that it takes a twentieth of the time.
        self._count_at = monotonic() + max(COUNT_SECONDS, 20 * (monotonic() - began))

    def _publish(self, reading: PageReading) -> None:
        with self._lock:
            self._reading = reading
            self.version += 1

    def _ask(self, connection: Connection, query: str) -> list[tuple[Any, ...]]:
        return self.log.rows(connection, self.log.query(query))
