"""The levels of the suite: what needs more than nothing fails in this one, and what takes long is left out where nobody asks."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.remote import WorkerInteractor

from tests.spark import conftest as spark
from tests.support import levels, servers_kafka, servers_mysql
from tests.support.levels import is_quick, leave_out_containers, leave_out_long, leave_out_pairs


def test_no_program_is_started_here() -> None:
    with pytest.raises(pytest.fail.Exception, match="starts no servers"):
        subprocess.run(["true"], check=True)
    assert subprocess.run([sys.executable, "-c", ""], check=False).returncode == 0


def test_no_worker_process_is_started_here() -> None:
    with pytest.raises(pytest.fail.Exception, match="starts no servers"):
        multiprocessing.get_context("spawn").Process(target=print).start()


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("level, leave_out", [("long", leave_out_long), ("containers", leave_out_containers)])
def test_what_takes_long_or_needs_an_engine_is_asked_where_somebody_wants_it(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    level: str,
    leave_out: Callable[..., None],
    asked: bool,
) -> None:
    items = [pytest.Function.from_parent(request.node.parent, name=f"test_{n}", callobj=lambda: None) for n in range(2)]
    items[1].add_marker(level)
    monkeypatch.setattr(request.config.option, level, asked)
    monkeypatch.setattr(request.config.hook, "pytest_deselected", lambda **_: None)
    leave_out(request.config, items)
    assert [item.name for item in items] == ["test_0", "test_1"][: 1 + asked]


@pytest.mark.parametrize("asked, left", [(False, 4 + 4), (True, 20)])
def test_each_value_beside_a_database_meets_one_database_in_turn(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, asked: bool, left: int
) -> None:
    databases = ("sqlite", "postgresql", "mariadb", "mysql")
    items: list[Any] = [_Asked(database, jobs) for database in databases for jobs in range(5)]
    monkeypatch.setattr(pytestconfig.option, "long", asked)
    monkeypatch.setattr(pytestconfig.hook, "pytest_deselected", lambda **_: None)
    leave_out_pairs(pytestconfig, items)
    assert len(items) == left
    assert {item.callspec.params["engine"] for item in items if item.callspec.params["jobs"] == 0} == set(databases)
    assert {item.callspec.params["jobs"] for item in items} == set(range(5))
    assert {item.callspec.params["engine"] for item in items if item.callspec.params["jobs"]} == set(databases)


@pytest.mark.parametrize(
    "value, quick",
    [
        ("sqlite", True),
        ("postgresql", False),
        ("postgresql, row triggers", False),
        ("tables in mariadb", False),
        ("broker messages", False),
        (("mariadb", "a layout"), False),
        (("sqlite", "a layout"), True),
        (8, True),
    ],
)
def test_what_is_quick_names_no_server_in_any_parameter(
    request: pytest.FixtureRequest, value: object, quick: bool
) -> None:
    item: Any = pytest.Function.from_parent(request.node.parent, name="test_x", callobj=lambda: None)
    item.path = request.config.rootpath / "tests/conformance/test_x.py"
    item.callspec = SimpleNamespace(params={"value": value})
    assert is_quick(item) == quick


def grouped(request: pytest.FixtureRequest, *marks: str, asks: str = "", path: str = "tests/unit/test_x.py") -> str:
    """What pytest-xdist sees of a test that has these groups: it tells them by the end of a test's name."""
    item: Any = pytest.Function.from_parent(request.node.parent, name="test_x", callobj=lambda: None)
    item.fixturenames = [asks]
    item.path = request.config.rootpath / path
    for mark in marks:
        item.add_marker(pytest.mark.xdist_group(mark))
    spark.pytest_collection_modifyitems([item])
    servers_kafka.pytest_collection_modifyitems([item])
    servers_mysql.pytest_collection_modifyitems([item])
    workers: Any = SimpleNamespace(getvalue={"loadgroup": True}.get)
    WorkerInteractor.pytest_collection_modifyitems(None, workers, [item])
    return str(item.nodeid).partition("test_x@")[2]


def test_tests_of_a_group_stay_in_one_process(request: pytest.FixtureRequest) -> None:
    """So that there is one Spark, one broker and one browser, and not one for each process."""
    assert grouped(request) == ""
    assert grouped(request, "browser") == "browser"
    assert grouped(request, asks="broker") == "kafka"
    assert grouped(request, asks="broker", path="tests/spark/test_x.py") == "spark"
    assert grouped(request, asks="mysql", path="tests/conformance/test_x.py") == "mysql"
    assert grouped(request, asks="mysql") == ""


def said_of(capsys: pytest.CaptureFixture[str], words: str) -> str:
    """What a run says next that has these words; it says them by itself."""
    said = ""
    for _ in range(1000):
        said += capsys.readouterr().err
        if words in said:
            return said
        time.sleep(0.01)
    raise AssertionError(said)


def test_a_run_is_never_silent_while_it_collects_or_a_test_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (levels.FIRST_SECONDS <= 5, levels.EVERY_SECONDS < 20) == (True, True), "what `./dev test` promises"
    monkeypatch.setattr(levels, "LONG_SECONDS", 0.02)
    progress = levels.Progress(every=0.01, first=0.01)
    progress.pytest_sessionstart()
    try:
        said_of(capsys, "collecting tests, 0:0")
        progress.pytest_xdist_node_collection_finished(["one", "two"])
        progress.pytest_runtest_logstart("tests/unit/test_x.py::test_one")
        said_of(capsys, "  0 %  0 of 2 tests, 0:00, tests/unit/test_x.py for 0 s")
        report: Any = SimpleNamespace(failed=True, when="teardown", nodeid="tests/unit/test_x.py::test_one")
        progress.pytest_runtest_logreport(report)
        assert "for" not in said_of(capsys, " 50 %  1 of 2 tests, 1 failed, 0:00\n").splitlines()[-1]
    finally:
        progress.pytest_sessionfinish()
    assert len(capsys.readouterr().err.splitlines()) >= 1, "what it came to stands before the summary"


class _Asked:
    """As much of an item as is asked for, which is equal to itself alone."""

    def __init__(self, database: str, jobs: int) -> None:
        self.path = Path("test_refresh_jobs.py")
        self.nodeid = f"test_refresh_jobs.py::test_x[{database}-{jobs}]"
        self.callspec = SimpleNamespace(params={"engine": database, "jobs": jobs})
        self.marks: list[object] = []
        self.add_marker = self.marks.append
