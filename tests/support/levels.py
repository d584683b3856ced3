"""The levels of the suite: which tests `--quick` chooses, and how a run shows on which level it is and how far.

`--quick` is what needs no server: tests/unit with the golden files, and tests/conformance on SQLite.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
REPEATING: Final = ("conformance", "hardening", "integration", "publisher", "spark", "web")
SERVERS: Final = frozenset(
    {
        *("postgresql", "mariadb", "mysql", "oracle", "broker", "kafka", "mock_cluster", "real_registry"),
        "s3_store",
        *("catalog_server", "keycloak"),
        *("postgresql_server", "logical_server", "mariadb_server", "mysql_server", "oracle_server", "spark", "java"),
    }
)
"""Fixtures, and values of parameters, that start something."""
MYSQL_ASKS: Final = (
    *("dialect_install", "dialect_keys", "dialect_mysql", "dialect_mysql_alone", "dialect_reflect", "dialect_replay"),
    *(
        "dialect_track",
        "dialect_triggers",
        "dialect_views",
        "ddl_locks",
        "existing_logs",
        "many_tables",
        "refresh_ranges",
        "key_ends",
    ),
    *("clocks", "compare", "consumer", "flow", "follow", "images", "outputs", "schemas", "upgrade", "verify"),
    *("rowreader", "rowreader_values", "source", "source_log", "source_plans_mariadb"),
    *("source_transactions", "source_atonce", "change_tables", "mariadb", "mysql_login", "session_limits"),
    *("rights_mariadb", "publisher_faults", "publisher_lock", "convert_database"),
)
"""The files whose tests MySQL answers for itself: its SQL, types, plans, locks and rights. Elsewhere it has the driver, the
dialect and the statements of MariaDB, which is asked; `-k mysql` asks both."""
DATABASES: Final = ("sqlite", "postgresql", "mariadb", "mysql")
THINNED: Final = (
    "existing_logs",
    "source_seen",
    "source_room",
    "refresh_ranges",
    "check",
    "source_numbers",
)
"""The files of the conformance level in whose tests what is asked beside the database (numbers of jobs, layouts, outputs,
moments) is answered by the same code for each of them, and not by SQL of its own: see `leave_out_pairs`."""
WHOLE: Final = ("histories", "rights_mariadb")
"""The files of other levels in which each database is asked everything: its own rights, or histories in groups."""
STARTING: Final = ("test_check_postgresql", "test_postgresql_versions")
"""Files of the conformance level whose tests start servers without a fixture."""
EVERY_SECONDS: Final = 15.0
"""How often a run says how far it is where no terminal shows it; whoever reads nothing for longer thinks that it hangs."""
LONG_SECONDS: Final = 10.0
"""From when on it says how long a test has been running."""
FIRST_SECONDS: Final = 3.0
"""When it says so for the first time."""


def level_of(path: Path) -> str:
    """Return the folder of a test below tests/."""
    parts = path.relative_to(ROOT / "tests").parts if path.is_relative_to(ROOT / "tests") else ()
    return parts[0] if len(parts) > 1 else ""


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the quick ones."""
    chosen = [item for item in items if is_quick(item)]
    left = set(items).difference(chosen)
    config.hook.pytest_deselected(items=list(left))
    items[:] = chosen


def leave_out_repeats(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Asks MySQL only what MariaDB has not answered for it."""
    if "mysql" in config.getoption("keyword"):
        return
    repeats = {item for item in items if level_of(item.path) in REPEATING and "mysql" in words_of(item)}
    repeats = {item for item in repeats if item.path.stem.removeprefix("test_") not in MYSQL_ASKS}
    config.hook.pytest_deselected(items=list(repeats))
    items[:] = [item for item in items if item not in repeats]


def leave_out_pairs(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Asks each database the first of the other values, and each other value one database in turn, in place of all pairs.

    The conformance level asks all pairs, but in a few files: it is where the databases' SQL is asked. In CI the others
    of its pairs take turns.
    """
    if config.getoption("--long"):
        return
    pairs: dict[str, dict[str, dict[str, pytest.Item]]] = {}
    for item in items:
        if _has_pairs(item) and (found := pair(item)):
            pairs.setdefault(item.nodeid.partition("[")[0], {}).setdefault(found[1], {})[found[0]] = item
    repeats: set[pytest.Item] = set()
    for values in pairs.values():
        for turn, by_database in enumerate(values.values()):
            asked = list(by_database)[turn % len(by_database)]
            repeats.update(item for name, item in by_database.items() if turn and name != asked)
    for item in [item for item in repeats if not _is_thinned(item)]:
        item.add_marker(pytest.mark.in_turn)
        repeats.remove(item)
    config.hook.pytest_deselected(items=list(repeats))
    items[:] = [item for item in items if item not in repeats]


def _has_pairs(item: pytest.Item) -> bool:
    return level_of(item.path) != "unit" and item.path.stem.removeprefix("test_") not in WHOLE


def _is_thinned(item: pytest.Item) -> bool:
    return level_of(item.path) != "conformance" or item.path.stem.removeprefix("test_") in THINNED


def pair(item: pytest.Item) -> tuple[str, str] | None:
    """Return a test's database and its other values; None without such two."""
    parameters = getattr(item, "callspec", None)
    if parameters is None:
        return None
    database, rest = "", list[str]()
    for name, value in sorted(parameters.params.items()):
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, str) and one in DATABASES and not database:
                database = one
            else:
                rest.append(f"{name} {one!r}")
    return (database, ", ".join(rest)) if database and rest else None


def leave_out_long(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Asks what takes long only where somebody wants that."""
    if config.getoption("--long"):
        return
    left = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if not item.get_closest_marker("long")]


def leave_out_containers(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Asks what runs in containers only where somebody wants that."""
    if config.getoption("--containers"):
        return
    left = [item for item in items if item.get_closest_marker("containers")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if not item.get_closest_marker("containers")]


def values_of(item: pytest.Item) -> set[str]:
    """Return the texts among a test's parameters, pairs included."""
    parameters = getattr(item, "callspec", None)
    values = parameters.params.values() if parameters is not None else ()
    each = [one for value in values for one in (value if isinstance(value, tuple) else (value,))]
    return {one for one in each if isinstance(one, str)}


def words_of(item: pytest.Item) -> set[str]:
    """Split a test's parameters into words, as in `postgresql, row triggers`."""
    return {word for value in values_of(item) for word in value.replace(",", " ").split()}


def is_quick(item: pytest.Item) -> bool:
    """Return True for all of tests/unit, and elsewhere for tests that start nothing."""
    if level_of(item.path) == "unit":
        return True
    if item.path.stem in STARTING:
        return False
    asked = {*getattr(item, "fixturenames", ()), *words_of(item)}
    return level_of(item.path) == "conformance" and SERVERS.isdisjoint(asked)


class Progress:
    """Shows level and percentage in place of a dot for each test: in one line of a terminal, else in a line now and then.

    A thread of its own does so: tests are collected for a minute, and one may take several.
    """

    def __init__(self, *, every: float = EVERY_SECONDS, first: float = FIRST_SECONDS) -> None:
        self._live = sys.stderr.isatty()
        self._every = every
        self._began = time.monotonic()
        self._count = self._done = self._failed = 0
        self._running: dict[str, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(first,), daemon=True)

    def pytest_sessionstart(self) -> None:
        self._thread.start()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._count = len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._count = len(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Print no letters for good results; the summary still counts them."""
        if report.failed or not self._count:
            return None
        if report.when == "call" or (report.when == "setup" and report.skipped):
            return report.outcome, "", ""
        return "", "", ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[nodeid] = time.monotonic()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed += report.failed
        if report.when == "teardown":
            self._done += 1
            self._running.pop(report.nodeid, None)

    def pytest_sessionfinish(self) -> None:
        """Leaves the line, before the summary is written."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
            self._show(last=True)

    def _watch(self, first: float) -> None:
        over = self._over.wait(0.5 if self._live else first)
        while not over:
            self._show()
            over = self._over.wait(0.5 if self._live else self._every)

    def _show(self, *, last: bool = False) -> None:
        said = self._said(time.monotonic())
        sys.stderr.write(f"\r\x1b[K{said}" if self._live else f"{said}\n")
        if self._live and last:
            sys.stderr.write("\n")
        sys.stderr.flush()

    def _said(self, now: float) -> str:
        minutes, seconds = divmod(int(now - self._began), 60)
        if not self._count:
            return f"collecting tests, {minutes}:{seconds:02}"
        failed = f", {self._failed} failed" if self._failed else ""
        share = 100 * self._done // self._count
        return (
            f"{share:3} %  {self._done:,} of {self._count:,} tests{failed}, {minutes}:{seconds:02}{self._longest(now)}"
        )

    def _longest(self, now: float) -> str:
        """Name the file of the test running longest."""
        running = sorted((began, nodeid) for nodeid, began in [*self._running.items()])
        if not running:
            return ""
        began, nodeid = running[0]
        file = nodeid.partition("::")[0]
        return f", {file}" if now - began < LONG_SECONDS else f", {file} for {now - began:.0f} s"
