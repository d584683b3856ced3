"""Servers that are not there: tests that need one are skipped with the reason, and fail where EVENTLOG_REQUIRE names it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = "unix:///nowhere/docker.sock"
NEEDS = {
    "oracle": ("tests/integration/test_oracle_server.py", "keys_parse_back"),
    "postgres-container": ("tests/conformance/test_postgresql_versions.py", "in_a_container"),
}


def pytest_says(path: str, chosen: str, **settings: str) -> str:
    """What a run of these tests says in the end, without a container engine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_", "EVENTLOG_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", "-k", chosen, path]
    settings = {"DOCKER_HOST": NOWHERE, **settings}
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, env={**kept, **settings})
    return done.stdout


@pytest.mark.in_turn
@pytest.mark.parametrize("server", NEEDS)
def test_without_an_engine_its_tests_are_skipped_and_the_reason_is_said(server: str) -> None:
    said = pytest_says(*NEEDS[server])
    assert "1 skipped" in said
    assert f"{server} is not there: " in said
    assert "no container engine answers" in said


@pytest.mark.in_turn
@pytest.mark.parametrize("server", NEEDS)
def test_a_server_that_is_required_and_not_there_fails(server: str) -> None:
    said = pytest_says(*NEEDS[server], EVENTLOG_REQUIRE=server)
    assert f"{server} is required and not there: " in said
    assert "skipped" not in said.splitlines()[-1]


def test_mysql_takes_part_only_where_it_was_fetched_or_must_be(tmp_path: Path) -> None:
    suite = ("tests/conformance/test_dialect_install.py", "installing_twice and mysql")
    nothing = {"EVENTLOG_FETCHED": str(tmp_path)}
    assert "deselected" in pytest_says(*suite, **nothing).splitlines()[-1]
    said = pytest_says(*suite, EVENTLOG_REQUIRE="mysql", **nothing)
    assert "mysql is required and not there: EVENTLOG_MYSQL_URL names none, `./dev fetch mysql` got none" in said
    assert list(tmp_path.iterdir()) == []
