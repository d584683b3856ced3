"""What every test gets: Hypothesis profiles, a folder for the run, levels, and the database servers where their plug-in exists."""

from __future__ import annotations

import datetime as dt
import gc
import os
import sqlite3
import sys
import warnings
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from multiprocessing import forkserver, resource_tracker, util

import pytest
from hypothesis import HealthCheck, settings

from eventlog.convert.work import find_why_alone
from tests.support import forking
from tests.support.leftovers import Run
from tests.support.levels import (
    Progress,
    choose,
    leave_out_containers,
    leave_out_long,
    leave_out_pairs,
    leave_out_repeats,
)

collect_ignore = ["examples"]  # wheels of others: tests install them, and run their tests there
KINDS = ("", "_mysql", "_oracle", "_kafka", "_registry", "_scim", "_store", "_catalog")
SERVERS = tuple(f"tests.support.servers{one}" for one in KINDS)
LONGEST_NAME = 200
ENGINE = "tests.support.containers"  # comes last: it imports one of them, and a plug-in may not be there before
pytest_plugins = [
    "tests.watched",
    "tests.support.daily",
    "tests.support.time_limit",
    *[name for name in SERVERS if find_spec(name)],
    ENGINE,
]


def refuse_datetime(value: dt.datetime) -> str:
    raise TypeError(f"sqlite3 is given {value!r}, which Python deprecates from 3.12 on: give it text.")


# CI asks a newer Python for a fifth of the tests a day, so what only that one refuses would be found days later.
sqlite3.register_adapter(dt.datetime, refuse_datetime)

os.environ.pop("COLUMNS", None)  # readline sets it for pytest-xdist, and reports would obey it

# Shared machines stutter, so time limits per example would fail at random; the blob makes a failure repeatable elsewhere.
settings.register_profile(
    "local",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=100,
    derandomize=False,  # Hypothesis has a default of its own where CI is set
)
# The same each day, so half of them; `@daily` adds as many that are new.
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, database=None, max_examples=50)
settings.load_profile("ci" if os.environ.get("CI") else "local")
settings.register_profile("quick", max_examples=10)
settings.register_profile("long", settings.get_profile("ci"), derandomize=False, max_examples=400)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--quick`, `--long`, `--containers`, `--fifth`, and `--today` and `--progress`, which ./dev asks for."""
    parser.addoption(
        "--quick", action="store_true", help="only what needs no server, with fewer examples of each property"
    )
    parser.addoption(
        "--long", action="store_true", help="also what is marked so, with four times the examples of each property"
    )
    parser.addoption("--containers", action="store_true", help="also what runs in containers, which takes minutes")
    parser.addoption("--fifth", action="store_true", help="where CI is set, a fifth of the tests, each day another one")
    parser.addoption(
        "--today", action="store_true", help="of the dearest tests a fifth, each day another one, as in CI"
    )
    parser.addoption("--progress", action="store_true", help="level and percentage in place of dots")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shortens a name that each process tells with each report: one had 64 million characters."""
    if isinstance(val, str | bytes) and len(val) > LONGEST_NAME:
        return f"{val[:40]!r} and so on, {len(val)}"
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what a machine without shared locks leaves out; what remains is asked of one process."""
    if why := find_why_alone():
        terminalreporter.write_line(f"{why} Tests that need several were skipped.")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Takes what is collected out of the sight of Python's collector: looking through thousands of tests again and again was
    more than half of the run's work.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        # What is frozen is not counted, so the oldest generation seems small and would be looked through again and again: that was
        # a sixth of the quick tests' time.
        gc.set_threshold(700, 10, 200)
        gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Gives the run a folder of its own; processes of xdist work in the one of the process that started them."""
    config.addinivalue_line(
        "markers", "long: asked with --long alone, because others ask nearly the same or it takes minutes"
    )
    config.addinivalue_line(
        "markers", "containers: asked with --containers alone, because it needs an engine and minutes"
    )
    if config.getoption("--quick"):
        settings.load_profile("quick")
    if config.getoption("--long"):
        settings.load_profile("long")
    if hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(Run(), "what the run leaves")
    if config.getoption("--progress"):
        config.pluginmanager.register(Progress(), "progress")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the quick ones where they are asked for, and out what is asked twice."""
    leave_out_repeats(config, items)
    leave_out_pairs(config, items)
    leave_out_long(config, items)
    leave_out_containers(config, items)
    if config.getoption("--quick"):
        choose(config, items)


@pytest.fixture(autouse=True)
def catalogs_are_closed() -> Iterator[None]:
    yield
    lakes = sys.modules.get("tests.support.lakes")
    if lakes is not None:
        lakes.close_catalogs()


@pytest.fixture(scope="session", autouse=True)
def nothing_to_fork_from_is_left() -> Iterator[None]:
    """Ends what worker processes come from before anybody looks what a run has left; multiprocessing does so only at exit."""
    yield
    forking.end()
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # there is no other way
    resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]  # as above
    util._run_finalizers()  # type: ignore[attr-defined]  # as above
    tried = sys.modules.get("bench.ending")
    if tried is not None:  # a worker of xdist is killed ten seconds after its last test, whatever it still has to do
        with (
            warnings.catch_warnings()
        ):  # pipes of their processes are closed with them, which nobody watched at exit either
            warnings.simplefilter("ignore", ResourceWarning)
            tried.clean_up()
            gc.collect()
