"""How often waiting rows are looked for: often after work, seldom after none, and no oftener than a look may cost."""

from __future__ import annotations

from threading import Event as Flag

import pytest
from sqlalchemy import Engine

from eventlog.core.errors import OccupiedError, SourceError
from eventlog.daemon import scheduling
from eventlog.daemon.health import PART
from eventlog.daemon.scheduling import DEAR_SECONDS, FRUITLESS_SECONDS, LONGEST_SECONDS, Wakeup
from eventlog.sql.log import Log
from tests.conformance.event_logs import installed


class Time(Flag):
    """A clock that only goes on while somebody looks or waits."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timeout or 0.0
        return False


class Looking(Wakeup):
    """Finds rows from a certain time on; a look takes `cost` seconds."""

    def __init__(self, log: Log, time: Time, cost: float, since: float = 10**9) -> None:
        super().__init__(log)
        self.time, self.cost, self.since = time, cost, since
        self.looks: list[float] = []
        self.noises: list[float] = []

    def _anything(self) -> bool:
        self.looks.append(self.time.now)
        self.time.now += self.cost
        return self.time.now >= self.since

    def _heard(self, seconds: float) -> bool:
        """Somebody floods the channel."""
        self.noises.append(self.time.now)
        self.time.now += 0.000_1
        return True


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(scheduling, "monotonic", lambda: time.now)
    return time


@pytest.fixture
def log(sqlite: Engine) -> Log:
    return Log(sqlite, installed(sqlite).names)


def test_cheap_looks_are_made_again_and_again_until_one_finds_something(time: Time, log: Log) -> None:
    looking = Looking(log, time, 0.0005, since=1000.4)
    assert looking.wait(10.0, time)
    assert time.now == pytest.approx(1000.4, abs=0.1)
    assert len(looking.looks) > 10


def test_dear_looks_take_a_small_part_of_a_core_however_often_one_waits(time: Time, log: Log) -> None:
    looking = Looking(log, time, 0.1)
    while time.now < 1060.0:
        assert not looking.wait(1.0, time)
    assert len(looking.looks) * looking.cost <= 60 / PART + 2 * looking.cost
    gaps = [later - earlier for earlier, later in zip(looking.looks, looking.looks[1:], strict=False)]
    assert min(gaps) >= PART * 0.1


@pytest.mark.parametrize("cost", [0.0005, 0.1])
def test_a_flood_of_notifications_costs_a_bounded_number_of_looks(time: Time, log: Log, cost: float) -> None:
    looking = Looking(log, time, cost)
    looking._channel = "LISTEN event_log"
    looking._active = 0.0
    while time.now < 1060.0:
        assert not looking.wait(1.0, time)
    apart = LONGEST_SECONDS if cost < DEAR_SECONDS else PART * cost
    assert len(looking.noises) <= 60 / apart + 2
    assert len(looking.looks) <= 2 * 60 / apart + 2
    assert len(looking.looks) >= 60 / apart / 2


def test_a_notification_is_answered_by_a_look_at_once(time: Time, log: Log) -> None:
    looking = Looking(log, time, 0.1, since=1000.1001)
    looking._channel = "LISTEN event_log"
    assert looking.wait(10.0, time)
    assert time.now < 1001.0, "although it has just made a dear look"


def test_a_flood_does_not_make_rows_be_read_again_and_again_that_cannot_be_read(time: Time, log: Log) -> None:
    looking = Looking(log, time, 0.0005, since=0.0)
    looking._channel = "LISTEN event_log"
    while time.now < 1060.0:
        assert looking.wait(1.0, time)
    assert len(looking.looks) <= 2 * 60 / FRUITLESS_SECONDS + 2


def test_who_cannot_listen_waits_and_turns_go_on(time: Time, log: Log) -> None:
    class Refusing(Looking):
        def _heard(self, seconds: float) -> bool:
            raise SourceError("Too many clients.")

    looking = Refusing(log, time, 0.0005)
    looking._channel = "LISTEN event_log"
    looking._active = 0.0
    while time.now < 1060.0:
        looking.wait(1.0, time)
    assert 1 < len(looking.looks) <= 2 * 60 / LONGEST_SECONDS + 2


class Refused(Looking):
    """A database that refuses every look until a certain time, and nothing else."""

    def __init__(self, log: Log, time: Time, until: float) -> None:
        super().__init__(log, time, 0.0005)
        self.until = until
        self.said: list[str | None] = []
        self.told = self.said.append

    def _anything(self) -> bool:
        super()._anything()
        if self.time.now < self.until:
            raise SourceError("The event log cannot be used: no.")
        return False


@pytest.mark.parametrize("has_work", [False, True])
@pytest.mark.parametrize("channel", [None, "LISTEN event_log"])
def test_turns_do_not_follow_each_other_where_only_looks_fail(
    time: Time, log: Log, *, has_work: bool, channel: str | None
) -> None:
    refused = Refused(log, time, until=1600.0)
    refused._channel = channel
    turns = 0
    while time.now < 1600.0:
        refused.wait(10.0, time)
        turns += 1
        if has_work:
            refused.note_work()
    # Rests double from half a second to thirty, of which half may be left to chance; a turn comes at least each ten.
    looks = [look for look in refused.looks if look < 1600.0]
    assert len(looks) <= 7 + 600 / 15
    assert turns <= len(looks) + 600 / 10 + 1
    assert turns >= 600 / 10
    while time.now < 1700.0:
        refused.wait(10.0, time)
    assert refused.said == ["The event log cannot be used: no.", None]
    assert len([look for look in refused.looks if look > 1650]) > 100


def test_a_look_that_is_refused_once_ends_the_wait_and_is_not_told(time: Time, log: Log) -> None:
    refused = Refused(log, time, until=1000.001)
    assert refused.wait(10.0, time), "the turn says what is wrong"
    assert not refused.wait(10.0, time)
    assert refused.said == []


def test_who_has_lost_the_lock_is_told_so_by_a_look(time: Time, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    looking = Looking(log, time, 0.0)

    def lost() -> bool:
        raise OccupiedError("Another publisher works there.")

    monkeypatch.setattr(looking, "_anything", lost)
    with pytest.raises(OccupiedError):
        looking.wait(1.0, time)
