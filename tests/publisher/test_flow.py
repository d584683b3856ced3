"""Whether a log flows, read from the journal: every waiting row counts once, for what it waits for."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import asdict
from sqlalchemy import Engine, text

from eventlog.care.flow import waiting_reasons
from eventlog.care.journal import hold, release
from eventlog.config.settings import PublisherConfig
from eventlog.publisher import flow as reading
from eventlog.publisher.flow import JournalLook
from eventlog.sources.log.flow import Flow
from tests.publisher.scene import Scene


def keep(scene: Scene, first: int, last: int) -> None:
    with scene.log.transaction() as connection:
        hold(connection, scene.log, [(first, last)], "somebody")


def assert_counts(scene: Scene, flow: Flow, **parts: int) -> None:
    """Check that these counts are told and no others; together they are all waiting rows."""
    assert {name: rows for name, rows in asdict(flow.parts).items() if rows} == parts
    assert flow.parts.total == len(scene.waiting())


def test_a_log_without_a_row_flows(engine: Engine) -> None:
    scene = Scene(engine, "one")
    flow = scene.flow()
    assert_counts(scene, flow)
    assert (flow.state, flow.oldest, flow.lag, flow.publishing, flow.lags) == ("flowing", None, 0.0, True, {})


def test_rows_that_nobody_has_read_are_ready(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    scene.write(1, 7)
    flow = scene.flow()
    assert_counts(scene, flow, ready=7)
    assert flow.oldest == 1
    assert flow.lag == pytest.approx(60, abs=30)
    assert flow.state == "flowing"


@pytest.mark.parametrize("names", [("one",), ("one", "two")])
def test_held_rows_and_those_behind_them(engine: Engine, names: tuple[str, ...]) -> None:
    scene = Scene(engine, *names)
    scene.write(1, 12)
    keep(scene, 4, 4)
    assert_counts(scene, scene.flow(), held=1, ready=11)  # nobody has looked at what is behind it
    scene.publish()
    flow = scene.flow()
    assert scene.waiting() == [4, 7, 10]
    assert_counts(scene, flow, held=3)
    assert (flow.state, flow.first_held, flow.oldest, flow.lag) == ("held", 4, None, 0.0)
    assert list(waiting_reasons(flow)) == ["3 rows are held or behind held ones; row 4 is the first."]
    with scene.log.transaction() as connection:
        release(connection, scene.log, [(4, 4)])
    assert_counts(scene, scene.flow(), ready=3)


def test_rows_that_a_receiver_did_not_take(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    scene.receivers["two"].again = {2}
    scene.write(1, 6)
    scene.publish()
    flow = scene.flow()
    assert scene.waiting() == [2, 5]
    assert_counts(scene, flow, retrying=2)
    assert (flow.state, flow.oldest, flow.lags) == ("retrying", 2, {})
    assert flow.lag == pytest.approx(60, abs=30)


@pytest.mark.parametrize("reason, part", [("retry", "retrying"), ("no right", "suspended")])
@pytest.mark.parametrize("since, is_ready", [(-20, False), (1, False), (250, False), (350, True)])
def test_a_row_waits_for_the_same_when_its_next_attempt_is_due_unless_nobody_makes_it(
    sqlite: Engine, reason: str, part: str, since: int, is_ready: bool
) -> None:
    scene = Scene(sqlite, "one", "two")
    scene.receivers["two"].again = {2}
    scene.write(1, 6)
    scene.publish()
    with scene.log.transaction() as connection:
        due = int((scene.log.now(connection).replace(tzinfo=UTC).timestamp() - since) * 1000)
        update = text("UPDATE event_log_parked SET reason = :reason, due = :due WHERE due IS NOT NULL")
        connection.execute(update, {"reason": reason, "due": due})
    assert_counts(scene, scene.flow(), **{"ready" if is_ready else part: 2})


@pytest.mark.parametrize("names", [("one",), ("one", "two")])
def test_a_held_row_behind_one_that_comes_again_is_held(engine: Engine, names: tuple[str, ...]) -> None:
    scene = Scene(engine, *names)
    for receiver in scene.receivers.values():
        receiver.again = {1}
    scene.write(1, 12)
    scene.publish()
    keep(scene, 7, 7)
    assert_counts(scene, scene.flow(), retrying=3, held=1)


def test_each_row_counts_once_whoever_waits_for_it(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(engine, "one", "two", "three")
    scene.receivers["one"].again = {1}
    scene.receivers["two"].again = {2}
    scene.write(1, 9)
    keep(scene, 3, 3)
    scene.publish()
    assert scene.waiting() == [*range(1, 10)]
    assert_counts(scene, scene.flow(), retrying=6, held=3)
    monkeypatch.setattr(reading, "MOST_COUNTED_ROWS", 5)
    parts = scene.flow().parts
    assert (parts.retrying, parts.held) == (3, 3)  # of very many, those of the output that has most


def test_an_output_that_is_away_lags(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    scene.receivers["two"].away = True
    scene.write(1, 20)
    scene.publish()
    flow = scene.flow()
    assert scene.receivers["one"].came == [*range(1, 21)]
    assert_counts(scene, flow, lagging=20)
    assert flow.state == "lagging"
    assert {name: (lag.rows, lag.first, lag.paused) for name, lag in flow.lags.items()} == {"two": (20, 1, False)}
    assert flow.lags["two"].seconds == pytest.approx(60, abs=30)
    assert list(waiting_reasons(flow)) == ["20 rows are kept for two."]
    with scene.log.transaction() as connection:
        assert JournalLook(connection, scene.log, PublisherConfig()).lags["two"].rows == 20


def test_a_moment_behind_the_others_is_no_lag(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    scene.write(1, 4, seconds=0.0)
    scene.publish("one")
    flow = scene.flow()
    assert_counts(scene, flow, ready=4)
    assert flow.lags == {}


def test_a_paused_output_lags_whenever_it_is_behind(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    scene.journal.pause("two", "since noon by somebody")
    assert {name: (lag.rows, lag.paused) for name, lag in scene.flow().lags.items()} == {"two": (0, True)}
    scene.write(1, 4, seconds=0.0)
    scene.publish()
    flow = scene.flow()
    assert_counts(scene, flow, lagging=4)
    assert list(waiting_reasons(flow)) == ["4 rows are kept for two, which somebody has paused."]
    scene.write(5, 8, seconds=0.0)
    assert_counts(scene, scene.flow(), lagging=4, ready=4)


def test_held_rows_are_kept_from_all_and_no_output_lags_for_them(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    scene.receivers["two"].away = True
    scene.write(1, 12)
    keep(scene, 1, 1)
    scene.publish()
    assert_counts(scene, scene.flow(), held=4, lagging=8)
    assert scene.flow().lags["two"].rows == 8


def test_rows_that_wait_for_a_right(engine: Engine) -> None:
    scene = Scene(engine, "one")
    scene.write(1, 3)
    keep(scene, 1, 3)
    scene.publish()
    scene.table.run("DELETE FROM event_log_hold")
    scene.table.run("UPDATE event_log_parked SET reason = 'no right', due = 8000000000000 WHERE record_id = 2")
    scene.table.run("UPDATE event_log_parked SET reason = 'not due', due = 8000000000000 WHERE record_id = 3")
    flow = scene.flow()
    assert_counts(scene, flow, suspended=1, held=1, not_due=1)
    assert (flow.state, flow.oldest) == ("suspended", 2)


def test_rows_whose_time_has_not_come(engine: Engine) -> None:
    scene = Scene(engine, "one")
    scene.write(1, 3)
    scene.write(4, 8, seconds=3600)
    flow = scene.flow(handle_future_events=True)
    assert_counts(scene, flow, ready=3, not_due=5)
    scene.publish()
    assert_counts(scene, scene.flow())


def test_the_oldest_row_is_found_behind_many_that_are_parked(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_COUNTED_ROWS", 3)
    scene = Scene(engine, "one", "two")
    scene.write(1, 12, objects=1)
    keep(scene, 1, 1)
    scene.publish()
    scene.write(13, 15, objects=1)
    flow = scene.flow()
    assert_counts(scene, flow, held=12, ready=3)
    assert flow.oldest == 13
    scene.write(-5, -5, objects=1)  # before all of them
    assert scene.flow().oldest == -5


def test_late_rows_are_stuck_and_failing_outputs_retry(engine: Engine) -> None:
    scene = Scene(engine, "one")
    scene.write(1, 3, seconds=-4000)
    assert scene.flow().state == "stuck"
    assert scene.flow(failing=True).state == "retrying"
    scene.lock.drop()
    flow = scene.flow()
    assert flow.oldest == 1
    assert flow.lag == pytest.approx(4000, abs=60)


def test_another_output_of_which_rows_come_again_leaves_those_that_are_ready(engine: Engine) -> None:
    """What lags is older than what is ready, and the age of each is told apart."""
    scene = Scene(engine, "one", "two")
    scene.receivers["two"].away = True
    scene.write(1, 4, seconds=-4000)
    scene.publish()
    scene.write(5, 6)
    flow = scene.flow()
    assert_counts(scene, flow, lagging=4, ready=2)
    assert flow.oldest == 1
    assert flow.ready_lag == pytest.approx(60, abs=30)
    assert flow.state == "lagging"
