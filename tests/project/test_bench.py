"""The benchmarks: they run, they compare like with like, and a missed target is said and not hidden."""

from __future__ import annotations

import datetime as dt
import gc
import json
from functools import partial
from pathlib import Path

import pytest

from bench import __main__ as command
from bench import readme
from bench.backlog import Standing, backlog
from bench.machine import this_machine
from bench.measure import Benchmark, Contestant, Target, Timing, measure
from bench.names import NAMES
from bench.plot import draw
from bench.report import Report, duration, markdown, report, save


def timing(name: str, *seconds: float, units: int = 10, floor: bool = False) -> Timing:
    return Timing(name=name, units=units, seconds=seconds, floor=floor)


def found(*timings: Timing, reached: bool = True) -> Report:
    target = Target(promise="a promise", measured="2 s", reached=reached)
    benchmark = Benchmark(name="x", question="why?", unit="row", contestants=[], targets=lambda _: [target])
    return report(benchmark, {one.name: one for one in timings}, this_machine())


@pytest.fixture
def no_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of tests behind it, collecting takes longer than what is tried."""
    monkeypatch.setattr(gc, "collect", int)


@pytest.mark.usefixtures("no_garbage")
def test_contestants_run_in_turn_after_a_round_that_does_not_count() -> None:
    ran: list[str] = []
    contestants = [Contestant(name=name, run=partial(ran.append, name)) for name in "ab"]
    timings = measure(contestants, runs=3)
    assert "".join(ran) == "ab" + "ab" + "ba" + "ab"
    assert {name: len(timing.seconds) for name, timing in timings.items()} == {"a": 3, "b": 3}


def test_a_figure_is_the_median_with_its_spread() -> None:
    one = timing("a", 1.0, 9.0, 2.0, 3.0, 2.0, units=4)
    assert (one.median, one.spread, one.rate, one.each) == (2.0, 4.0, 2.0, 0.5)


def test_the_table_compares_by_unit_with_the_floor() -> None:
    text = markdown(found(timing("least", 1.0, units=10, floor=True), timing("ours", 6.0, units=20)))
    assert "| least | 10 | 1 s | one run | 100 ms | 10 | floor |" in text
    assert "| ours | 20 | 6 s | one run | 300 ms | 3 | 3.00× |" in text


@pytest.mark.parametrize("reached,said", [(True, "* reached: a promise"), (False, "* NOT REACHED: a promise")])
def test_every_target_is_said_to_be_reached_or_not(reached: bool, said: str) -> None:
    assert said in markdown(found(timing("a", 1.0), reached=reached))


def test_the_result_is_kept_as_json_and_names_no_place(tmp_path: Path) -> None:
    report = found(timing("a", 1.0, 2.0))
    path = save(report, tmp_path)
    kept = json.loads(path.read_bytes())
    assert path.name == "x.json"
    (one,) = kept["timings"]
    assert (one["seconds"], one["median"], one["spread"]) == ([1.0, 2.0], 1.5, pytest.approx(2 / 3))
    assert readme.kept(tmp_path) == [report]
    assert dt.date.fromisoformat(kept["day"]) <= dt.datetime.now(tz=dt.UTC).date()
    assert str(Path.home()) not in path.read_text()


@pytest.mark.parametrize(
    "seconds,said", [(2.5, "2.5 s"), (0.0125, "12.5 ms"), (4.2e-05, "42 µs"), (9.99e-08, "99.9 ns")]
)
def test_durations_are_written_for_people(seconds: float, said: str) -> None:
    assert duration(seconds) == said


TRIED = frozenset(
    {
        *("tablekey", "rules", "linter", "values", "poll", "publish", "queryback", "receiver", "convert"),
        *("changetables", "lake", "growth.publish", "peers.publish", "capture.insert"),
    }
)
"""One of each kind. The others share its parts, start the same programs again, and take ten minutes of a run when they are
only tried; whoever wants their figures runs them."""


@pytest.mark.in_turn
@pytest.mark.usefixtures("no_garbage")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in TRIED else pytest.mark.long) for name in NAMES if name != "startup"],
)
def test_every_benchmark_runs(name: str) -> None:
    benchmark = command.load(name, quick=True)
    timings = measure(benchmark.contestants, runs=1)
    assert benchmark.name == name
    # On a busy machine a document may be there before its commit has come back to the writer.
    assert name == "latency" or all(timing.median > 0 for timing in timings.values())
    assert len(timings) == len(benchmark.contestants)
    assert benchmark.targets(timings)


def test_a_publisher_that_stays_open_publishes_what_is_filled_in_again() -> None:
    log = backlog("again_log", 80)
    publisher = Standing(log)
    for _ in range(2):
        log.refill()
        assert not [*log.folder.glob("*.xml")]
        publisher.publish()
        assert [*log.folder.glob("*.xml")]


@pytest.mark.parametrize("arguments", [["nonsense"], ["rules", "--runs", "3"]])
def test_what_makes_no_figure_is_refused(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bench", *arguments])
    with pytest.raises(SystemExit) as stop:
        command.main()
    assert stop.value.code == 2


def test_the_page_about_performance_says_how_many_promises_are_kept() -> None:
    text = readme.FIGURES.read_text(encoding="utf-8")
    assert readme.written(text, readme.section(readme.kept())) == text


def test_a_page_without_a_place_for_the_figures_is_an_error() -> None:
    with pytest.raises(SystemExit, match="no place for the figures"):
        readme.written("# eventlog\n", "")


def test_the_page_beside_the_results_has_all_of_them() -> None:
    assert readme.PAGE.read_text(encoding="utf-8") == readme.page(readme.kept())


def test_a_missed_promise_is_counted_and_explained() -> None:
    reports = [found(timing("a", 1.0), reached=False)]
    assert "0 of 1 promises are kept" in readme.section(reports)
    text = readme.page(reports)
    assert "Missed, and what bounds it:" in text
    assert "| `x` | a promise | 2 s | none yet |" in text


def test_a_kept_promise_is_not_called_missed() -> None:
    text = readme.page([found(timing("a", 1.0))])
    assert "| `x` | a promise | 2 s | 1 of 1 |" in text
    assert "Missed" not in text


def test_what_was_missed_is_explained_in_a_profile() -> None:
    text = readme.page(readme.kept())
    assert "none yet" not in text
    assert all(f"(profiles/{file.name})" in text for file in readme.PROFILES.glob("*.*.txt"))


def test_a_result_is_drawn_the_same_each_time(tmp_path: Path) -> None:
    one = found(timing("ours", 1.0, 2.0, 3.0, units=2), timing("least", 1.0, units=2, floor=True))
    first, second = (draw(one, tmp_path / f"{number}.svg").read_text() for number in (1, 2))
    assert first == second
    assert "ours" in first
    assert "1 s" in first
