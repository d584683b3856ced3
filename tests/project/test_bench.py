"""The benchmarks: they run, and a missed target is said and not hidden; pages show every result that is kept, with its plot."""

from __future__ import annotations

import datetime as dt
import gc
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench import __main__ as command
from bench import readme
from bench.backlog import Standing, backlog
from bench.machine import this_machine
from bench.measure import Benchmark, Contestant, Target, Timing, measure
from bench.names import NAMES
from bench.plots import draw_all, draw_result
from bench.readme import README, SHOWN
from bench.report import RESULTS, Report, markdown, report, save
from docs.plots import figures


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


def test_a_publisher_that_stays_open_publishes_what_is_filled_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.backlog.LIMIT", 20)
    log = backlog("again_log", 80)
    publisher = Standing(log)
    for _ in range(3):
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


def test_the_page_beside_the_results_has_all_of_them() -> None:
    assert readme.PAGE.read_text(encoding="utf-8") == readme.page(readme.kept())


def test_a_missed_promise_is_counted_and_explained() -> None:
    reports = [found(timing("a", 1.0), reached=False)]
    assert "keep 0 of 1 promises" in readme.section(reports)
    text = readme.page(reports)
    assert "Missed, and what bounds it:" in text
    assert "| `x` | a promise | 2 s | none yet |" in text


def test_what_was_missed_is_explained_in_a_profile() -> None:
    text = readme.page(readme.kept())
    assert "none yet" not in text
    assert "(../profiles/capture.txt)" in text


def test_only_what_pages_quote_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {result.stem for result in RESULTS.glob("*.json")} == {*readme.QUOTED}
    saved: list[str] = []

    def keep(report: Report) -> Path:
        saved.append(report.name)
        return tmp_path / report.name

    def load(name: str, **_: object) -> Benchmark:
        nothing = Contestant(name="nothing", run=lambda: None)
        return Benchmark(name=name, question="", unit="", contestants=[nothing], targets=lambda _: [])

    monkeypatch.setattr(command, "load", load)
    monkeypatch.setattr(command, "save", keep)
    monkeypatch.setattr(command, "draw_result", lambda *_: None)
    monkeypatch.setattr(readme, "write", lambda: None)
    monkeypatch.setattr("sys.argv", ["bench", "rules", SHOWN])
    assert command.main() == 0
    assert saved == [SHOWN]


def test_every_result_is_shown() -> None:
    page = "\n".join(figures(RESULTS))
    for result in RESULTS.glob("*.json"):
        found = json.loads(result.read_text())
        assert f"### {found['name']}\n" in page
        assert all(target["measured"] in page for target in found["targets"])
        assert f"(plots/{found['name']}.svg)" in page


def test_results_that_are_kept_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of each kind. All of them are drawn where `./dev check` makes the pages, which takes a second for each."""
    bars = next(one for one in readme.kept() if one.name == "latency")
    series = [Timing(name="rows", units=size, seconds=(size / 10,), series="rows", size=size) for size in (10, 100)]
    curves = replace(bars, name="growth.rows", timings=series)
    monkeypatch.setattr("bench.plots.kept", lambda: [bars, curves])
    drawn = {plot.stem for plot in draw_all(tmp_path) if plot.read_text().startswith("<?xml")}
    assert drawn == {"latency", "growth.rows", "soak"}


def test_no_plot_is_kept_but_the_readmes() -> None:
    kept = subprocess.run(
        ["git", "ls-files", "bench/*.svg"], capture_output=True, text=True, check=True, cwd=README.parent
    )
    assert kept.stdout.split() == [f"bench/results/{SHOWN}.svg"]
    assert f"bench/results/{SHOWN}.svg" in README.read_text(encoding="utf-8")


def test_the_readmes_plot_is_that_of_its_result(tmp_path: Path) -> None:
    [report] = [one for one in readme.kept() if one.name == SHOWN]
    assert draw_result(report, tmp_path / "drawn.svg").read_text() == (RESULTS / f"{SHOWN}.svg").read_text()


def test_a_benchmark_is_held_against_that_of_another_checkout(tmp_path: Path) -> None:
    root = README.parent
    command = [sys.executable, "-m", "bench.against"]
    run = partial(subprocess.run, capture_output=True, text=True, cwd=root, check=False, timeout=120)
    # The same one: in a quick run its ratios may be anything.
    same = run([*command, str(root), "tablekey", "--quick", "--runs", "2", "--only", "quoted"])
    assert (same.returncode, same.stderr) == (0, "")
    *_, line = same.stdout.splitlines()
    contestant, *figures = [cell.strip(" *") for cell in line.strip("|").split("|")]
    assert contestant == "quoted"
    assert all(float(figure) > 0 for figure in figures[:4])
    without = run([*command, str(tmp_path), "tablekey"])
    assert without.returncode == 2
    assert "run `./dev run true` there once" in without.stderr
    broken = run([*command, str(root), "nonsense"])
    assert broken.returncode == 1
    assert "The benchmark has ended too early" in broken.stderr
