"""The levels of the suite: what needs more than nothing fails in this one, and what takes long is left out where nobody asks."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.remote import WorkerInteractor

from tests.spark import conftest as spark
from tests.support import servers_kafka, servers_mysql
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


class _Asked:
    """As much of an item as is asked for, which is equal to itself alone."""

    def __init__(self, database: str, jobs: int) -> None:
        self.path = Path("test_refresh_jobs.py")
        self.nodeid = f"test_refresh_jobs.py::test_x[{database}-{jobs}]"
        self.callspec = SimpleNamespace(params={"engine": database, "jobs": jobs})
        self.marks: list[object] = []
        self.add_marker = self.marks.append
