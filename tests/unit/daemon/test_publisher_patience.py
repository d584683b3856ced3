"""What a publisher does not do: wait ever the same, read again what fails for good, beat every second, make all wait for one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from threading import Event as Flag
from time import monotonic
from typing import cast

import pytest
from sqlalchemy import Engine

from eventlog.care.outputs import pause
from eventlog.config.settings import PublisherConfig
from eventlog.core.errors import MachineError, SinkError, SourceError
from eventlog.core.model import Document, Outcome, Status
from eventlog.daemon import publisher as turns
from eventlog.daemon import scheduling, workers
from eventlog.daemon.lag_limits import MostBehindWatch
from eventlog.daemon.publisher import Publisher
from eventlog.daemon.scheduling import CycleWait, Heartbeat, Wakeup
from eventlog.daemon.workers import Line
from eventlog.delivery.output import Output
from eventlog.publisher.new_rows import UnsealedRows
from eventlog.sql.log import Log
from eventlog.xds.write import HEARTBEAT, XdsFormat
from tests.integration.publishing import config_of, site
from tests.support.memory import MemorySink, OneEach

ENOUGH = 40
"""What happens so often happens for ever."""


class Waits:
    """Every wait of a publisher, which lasts no time here; ends the publisher after so many."""

    def __init__(self, patch: pytest.MonkeyPatch, most: int) -> None:
        self.seconds: list[float] = []
        self.publisher: Publisher | None = None
        self.most = most
        self.meanwhile: Callable[[int], None] = lambda _number: None
        self.now = monotonic()

        def wait(_rest: CycleWait, seconds: float, *_each: object, **_alert: object) -> None:
            self.seconds.append(seconds)
            self.now += seconds
            self.meanwhile(len(self.seconds))
            if len(self.seconds) >= self.most and self.publisher is not None:
                self.publisher.stop()

        patch.setattr(CycleWait, "for_seconds", wait)
        for module in (turns, workers):
            patch.setattr(module, "monotonic", lambda: self.now)

    def of(self, publisher: Publisher) -> list[float]:
        """The waits of this publisher until it ends."""
        self.publisher = publisher
        for _ in publisher.rounds():
            pass
        return self.seconds


class Failing(MemorySink):
    """Takes nothing while it is `away`."""

    away = True

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        if self.away:
            raise SinkError("The receiver is away.")
        return super().commit(plan, documents)


def test_after_each_failure_it_waits_twice_as_long_up_to_half_a_minute(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, sink, waits = site(sqlite), Failing([]), Waits(monkeypatch, 14)
    log.write(1)

    def meanwhile(number: int) -> None:
        sink.away = number != 10
        if number == 11:
            log.write(2, key="idu=2")

    waits.meanwhile = meanwhile
    with Publisher(config_of(sqlite, tmp_path), outputs=[Output(format=OneEach(), sink=sink)]) as publisher:
        seconds = waits.of(publisher)
    failed = seconds[:10]
    longest = [min(30.0, 0.5 * 2**attempt) for attempt in range(10)]
    assert all(most / 2 <= waited <= most for waited, most in zip(failed, longest, strict=True)), failed
    assert seconds[10] == 10, "all was well: it rests for its interval"
    assert seconds[11] <= 0.5, "and begins anew when something fails again"
    assert all(later > earlier for earlier, later in pairwise(seconds[11:]))


def test_who_stood_by_after_failures_begins_anew_with_short_waits(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who stands by reaches the database: what had failed before is over."""
    log, waits = site(sqlite), Waits(monkeypatch, 8)

    def read(*_given: object) -> None:
        raise SourceError("The server was stopped.")

    def meanwhile(number: int) -> None:
        if number in (5, 6):
            until = dt.datetime.now(tz=dt.UTC) + dt.timedelta(minutes=50 if number == 5 else -50)
            mark = f"{until.replace(tzinfo=None).isoformat(timespec='milliseconds')} somebody:else"
            log.run("UPDATE event_log_mark SET value = :mark WHERE name = 'publisher'", {"mark": mark})

    waits.meanwhile = meanwhile
    monkeypatch.setattr(UnsealedRows, "next", read)
    with Publisher(config_of(sqlite, tmp_path)) as publisher:
        seconds = waits.of(publisher)
    assert seconds[4] >= 4, "it has failed five times"
    assert seconds[5] == 1, "it stands by"
    assert seconds[6] <= 0.5
    assert seconds[7] <= 1


@pytest.mark.parametrize("until_empty", [True, False])
def test_what_fails_for_good_is_not_read_for_ever(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until_empty: bool
) -> None:
    reads: list[int] = []

    def read(*given: object) -> None:
        reads.append(len(given))
        assert len(reads) < ENOUGH, "it reads for ever"
        raise SourceError("The table is gone.", may_pass=False)

    site(sqlite).write(1)
    waits = Waits(monkeypatch, ENOUGH)
    monkeypatch.setattr(UnsealedRows, "next", read)
    with Publisher(config_of(sqlite, tmp_path)) as publisher, pytest.raises(MachineError, match="table is gone"):
        list(publisher.rounds(until_empty=until_empty))
    assert 1 < len(reads) < 10, "it looks at the tables again, a few times"
    assert waits.seconds == []


def test_the_heart_does_not_beat_at_who_lags(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(scheduling, "monotonic", lambda: now[0])
    near, far = MemorySink([]), MemorySink([])
    heart = Heartbeat(
        [Output(format=XdsFormat(), sink=sink, name=name) for name, sink in (("n", near), ("f", far))], 60
    )
    now[0] = 61
    failures: list[str] = []

    def failed(name: str, _error: SinkError) -> None:
        failures.append(name)

    assert heart.beat(lambda: None, failed, {"f"})
    assert (near.sizes, far.sizes) == ([1], [])
    now[0] = 122
    assert not heart.beat(lambda: None, failed, {"n", "f"}), "nobody was told"
    now[0], near.fails_at = 183, HEARTBEAT
    assert heart.beat(lambda: None, failed), "who comes behind one that fails is told"
    assert (near.sizes, far.sizes, failures) == ([1, 1], [1], ["n"])
    assert not heart.beat(lambda: None, failed), "a failure is no reason to beat again at once"


@pytest.mark.parametrize("may_pass", [True, False])
def test_an_output_that_refuses_a_heartbeat_is_left_behind_and_a_paused_one_gets_none(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_pass: bool
) -> None:
    now, log = [1000.0], site(sqlite)
    monkeypatch.setattr(scheduling, "monotonic", lambda: now[0])

    class Beats(MemorySink):
        refuses = False

        def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
            if self.refuses:
                raise SinkError("The receiver answered 403.", may_pass=may_pass)
            return super().commit(plan, documents)

    sinks = {name: Beats([]) for name in ("bad", "good", "paused")}
    sinks["bad"].refuses = True
    wait_ends: list[float] = []

    def wait(
        _rest: CycleWait,
        seconds: float,
        each: Callable[[], None] = lambda: None,
        **_: object,
    ) -> None:
        for _second in range(max(1, round(seconds))):
            now[0] += 1
            each()
        wait_ends.append(now[0])
        if len(wait_ends) == 1:
            pause(Log(sqlite, log.names), "paused", list(sinks), by="somebody", why="")
        if now[0] >= 1190:
            publisher.stop()

    monkeypatch.setattr(CycleWait, "for_seconds", wait)
    config = config_of(sqlite, tmp_path, heartbeat_interval=1)
    outputs = [Output(format=XdsFormat(), sink=sink, name=name) for name, sink in sinks.items()]
    with Publisher(config, outputs=outputs) as publisher:
        for _ in publisher.rounds():
            pass
    assert sinks["good"].sizes == [1, 1, 1], "once a minute, and no more often"
    assert sinks["paused"].sizes == []


def test_the_heart_does_not_beat_at_who_has_had_no_turn(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others wait for an output that is too far behind: nobody has opened their targets yet."""
    site(sqlite)
    now = [1000.0]
    monkeypatch.setattr(scheduling, "monotonic", lambda: now[0])
    sinks = {name: MemorySink([]) for name in ("far", "waits")}

    def hold_up(_: MostBehindWatch, lines: Sequence[Line]) -> None:
        for line in lines:
            line.held_up = line.name == "waits"

    def wait(_rest: CycleWait, _seconds: float, each: Callable[[], None] = lambda: None, **_: object) -> None:
        now[0] += 61
        each()
        publisher.stop()

    monkeypatch.setattr(MostBehindWatch, "hold_up", hold_up)
    monkeypatch.setattr(CycleWait, "for_seconds", wait)
    outputs = [Output(format=XdsFormat(), sink=sink, name=name) for name, sink in sinks.items()]
    with Publisher(config_of(sqlite, tmp_path, heartbeat_interval=1), outputs=outputs) as publisher:
        for _ in publisher.rounds():
            pass
    assert [sinks[name].sizes for name in ("far", "waits")] == [[1], []]


def test_whatever_a_sink_raises_when_it_is_closed_all_is_given_back(sqlite: Engine, tmp_path: Path) -> None:
    class Clinging(MemorySink):
        def close(self) -> None:
            raise SinkError("It cannot be closed.")

    class Closing(MemorySink):
        closed = False

        def close(self) -> None:
            self.closed = True

    site(sqlite).write(1)
    last, format_ = Closing([]), OneEach()
    outputs = [Output(format=format_, sink=sink, name=name) for name, sink in (("a", Clinging([])), ("b", last))]
    publisher = Publisher(config_of(sqlite, tmp_path), outputs=outputs)
    publisher.run_once()
    with pytest.raises(SinkError):
        publisher.close()
    assert last.closed


@pytest.mark.parametrize(
    "later, all_held, waited",
    [(None, False, 10), (3600.0, False, 10), (2.5, False, 2.5), (3600.0, True, 3600), (2.5, True, 2.5)],
)
def test_a_row_that_waits_does_not_postpone_the_polling_of_others(
    later: float | None, all_held: bool, waited: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = Waits(monkeypatch, 1)
    resting = CycleWait(PublisherConfig(polling_interval=10), None, Flag(), lambda: None)
    resting.until_next(lambda: None, later=later, all_held=all_held)
    assert waits.seconds == [waited]


def test_rows_that_come_while_another_waits_for_an_hour_are_published_at_the_next_interval(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, waits = site(sqlite), Waits(monkeypatch, 3)
    sink = MemorySink([], {1: Status.NEW})
    log.write(1)

    def writing(number: int) -> None:
        if number == 1:
            log.write(2, key="idu=2")

    waits.meanwhile = writing
    config = config_of(sqlite, tmp_path, on_retry="object", retry_first=3600, retry_longest=3600)
    with Publisher(config, outputs=[Output(format=OneEach(), sink=sink, answers=True)]) as publisher:
        seconds = waits.of(publisher)
    assert seconds == [10, 10, 10]
    assert list(sink.taken) == ["1", "2"]
    assert log.statuses() == {1: "N", 2: "S"}


def test_an_idle_publisher_beats_after_its_minutes_and_not_soon_after_a_document(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, beats, log = [1000.0], list[float](), site(sqlite)
    monkeypatch.setattr(scheduling, "monotonic", lambda: now[0])

    class Beats(MemorySink):
        def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
            if [document.id for document in documents] == [HEARTBEAT]:
                beats.append(now[0] - 1000)
            return super().commit(plan, documents)

    def wait(_rest: CycleWait, seconds: float, each: Callable[[], None] = lambda: None, **_alert: object) -> None:
        for _ in range(round(seconds)):
            now[0] += 1
            each()
        if now[0] == 1090:
            log.write(1)
        if now[0] >= 1220:
            publisher.stop()

    monkeypatch.setattr(CycleWait, "for_seconds", wait)
    config = config_of(sqlite, tmp_path, heartbeat_interval=1)
    with Publisher(config, outputs=[Output(format=XdsFormat(), sink=Beats([]))]) as publisher:
        for _ in publisher.rounds():
            pass
    assert beats == [60, 150, 210], "a minute after the first, and a minute after the document at 90"


@pytest.mark.parametrize("all_held, ends", [(False, True), (True, False)])
def test_rows_that_come_end_the_wait_unless_nothing_would_be_read(all_held: bool, ends: bool) -> None:
    class Alert:
        """Rows come at once."""

        def wait(self, seconds: float, stopped: Flag) -> bool:
            return True

    stopped = Flag()
    resting = CycleWait(PublisherConfig(polling_interval=10), cast("Wakeup", Alert()), stopped, stopped.set)
    resting.until_next(lambda: None, later=0.01, all_held=all_held)
    assert stopped.is_set() is not ends


def test_with_a_limit_of_0_all_that_waits_is_published(sqlite: Engine, tmp_path: Path) -> None:
    log = site(sqlite)
    for number in range(1, 41):
        log.write(number, key=f"idu={number}")
    with Publisher(config_of(sqlite, tmp_path, query_limit=0)) as publisher:
        assert publisher.run_once().events == 40
    assert set(log.statuses().values()) == {"S"}
