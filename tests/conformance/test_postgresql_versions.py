"""The suites of triggers, keys and rights on every supported version of PostgreSQL, each in a run of its own.

The whole of tests/conformance runs on the system's version; here it is the part in which versions could differ, without
random work (test_dialect_replay), which asks nothing that these do not; what reads the log are plain queries, which the
publisher of the suite of rights asks. The oldest and
the newest version are asked in every run, those between with --long.
EVENTLOG_REQUIRE=postgres-versions makes a version that cannot be had a failure.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.fetching import fetched
from tests.support.postgresql_versions import VERSIONS, binaries
from tests.support.servers import absent, containers_answer, postgres_binaries, running, said

ROOT = Path(__file__).resolve().parents[2]
SUITES = (
    "conformance/test_dialect_triggers.py",
    "conformance/test_dialect_keys.py",
    "conformance/test_dialect_postgresql.py",
    "conformance/test_dialect_postgresql_ddl.py",
    "conformance/test_dialect_postgresql_statements.py",
    "conformance/test_dialect_views.py",
    "integration/test_rights_postgresql.py",
)
LEFT = (
    "options_that_cannot",
    "would_misread",
    "neither_the_log",
    "field-replace",
    "field-back",
)
"""What is asked of the version by others in these files: what our own code refuses, a right of five that are given alike, and
the styles whose triggers are those of `field` with other numbers."""
SELDOM = (
    "test_after_an_alteration and field",
    "test_dialect_triggers and row-back",
    "test_dialect_postgresql_statements and row]",
)
"""What is asked of the version only with --long, because others ask nearly the same: fifteen alterations in place of four, what
the style `field` is asked too, and triggers for each row where those for each statement are
asked and test_the_log_says_what_the_table_says asks both."""
FEWEST = 50
"""Tests that these suites have at least on a day, with some of their values; fewer would mean that they were not found."""


def chosen(*left: str) -> str:
    """Write pytest's choice of tests without those left out."""
    return f"postgresql and not ({' or '.join(f'({words})' for words in left)})"


def suites(long: bool, **settings: str) -> str:
    """Run the suites with these settings, and return pytest's output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-profile", "quick"]
    done = subprocess.run(
        [*command, "-k", chosen(*LEFT) if long else chosen(*LEFT, *SELDOM), *(f"tests/{suite}" for suite in SUITES)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**kept, "EVENTLOG_REQUIRE": "postgres", **settings},
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return done.stdout


def passed(told: str) -> int:
    found = re.search(r"^(\d+) passed", told.splitlines()[-1])
    return int(found[1]) if found else 0


@pytest.fixture
def postgresql_version() -> int:
    """Return the major version of this machine's PostgreSQL, under all other tests; 0 if there is none."""
    folder = None if "EVENTLOG_POSTGRES_URL" in os.environ else postgres_binaries()
    found = re.search(r" (\d+)", said(folder / "postgres", "--version")) if folder else None
    return int(found[1]) if found else 0


def asked() -> list[Any]:
    """List the versions; those in between run seldom: their changes show at the ends too, unless taken back."""
    ends = {min(VERSIONS), max(VERSIONS)}
    return [major if major in ends else pytest.param(major, marks=pytest.mark.long) for major in VERSIONS]


@pytest.mark.in_turn
@pytest.mark.parametrize("major", asked())
def test_the_suites_pass_on_version(major: int, postgresql_version: int, pytestconfig: pytest.Config) -> None:
    if major == postgresql_version:
        pytest.skip("the whole of tests/conformance runs on this version")
    with server(major) as settings:
        assert passed(suites(bool(pytestconfig.getoption("--long")), **settings)) >= FEWEST


@contextmanager
def server(major: int) -> Iterator[dict[str, str]]:
    """Yield the settings to find a version: fetched programs, else its makers' container."""
    if fetched("postgres-versions") is None and containers_answer():
        with container(f"postgres:{major}") as url:
            yield {"EVENTLOG_POSTGRES_URL": url}
        return
    folder = binaries(major)
    assert f" {major}." in said(folder / "postgres", "--version")
    yield {"EVENTLOG_POSTGRES": str(folder)}


def test_the_suites_pass_in_a_container(pytestconfig: pytest.Config) -> None:
    if not containers_answer():
        absent("postgres-container", "no container engine answers")
    with container(f"postgres:{max(VERSIONS)}") as url:
        assert passed(suites(bool(pytestconfig.getoption("--long")), EVENTLOG_POSTGRES_URL=url)) >= FEWEST


@contextmanager
def container(image: str) -> Iterator[str]:
    """Start PostgreSQL in a container; its superuser needs no password."""
    from testcontainers.community.postgres import PostgresContainer

    def make() -> PostgresContainer:
        packed = PostgresContainer(image, username="postgres", driver="psycopg")
        return packed.with_env("POSTGRES_HOST_AUTH_METHOD", "trust")

    with running("postgres-container", make) as packed:
        yield packed.get_connection_url().rpartition("/")[0] + "/"
