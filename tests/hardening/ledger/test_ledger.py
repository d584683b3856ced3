"""A ledger of versions for every output and every handover: what was committed is there once, in order, with its letter.

`python -m tests.hardening ledger --kills 1000 --seed N` is the long run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Engine, create_engine, text

from tests.hardening.ledger.covering import (
    ABREAST,
    CRASHING,
    HISTORIES,
    OUTPUTS,
    Case,
    asked_again,
    at_random,
    campaign,
    cases,
)
from tests.hardening.ledger.runs import Run, Servers
from tests.hardening.troubles import own_server

IS_LONG: Final = "EVENTLOG_LEDGER" in os.environ
SEED, KILLS = map(int, os.environ.get("EVENTLOG_LEDGER", "1 0").split())

Crashing = tuple[Engine, Callable[[], None]]
Findings = Callable[[Case], str]


def grouped(found: Iterable[Case], *marks: pytest.MarkDecorator) -> list[Any]:
    """The cases, those that need a broker where all tests of brokers are; a server that crashes is made once too."""
    parameters = []
    for case in found:
        group = "kafka" if case.needs_broker else "ledger on a server of its own" if case.database == CRASHING else ""
        more = [pytest.mark.xdist_group(group)] if group else []
        parameters.append(pytest.param(case, id=str(case), marks=[*marks, *more]))
    return parameters


@pytest.fixture(scope="module")
def crashing() -> Iterator[Crashing]:
    """A PostgreSQL server of our own, and what stops it at once and starts it again."""
    folder = Path(tempfile.mkdtemp(prefix="eventlog-ledger-"))
    try:
        with own_server(folder) as found:
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def findings(request: pytest.FixtureRequest, tmp_path: Path) -> Findings:
    """Runs a case, and tells what is wrong, if anything is."""

    def run(case: Case) -> str:
        kafka = request.getfixturevalue("broker").servers if case.needs_broker else ""
        if case.database == CRASHING:
            server, crash = request.getfixturevalue("crashing")
            engine, servers = new_database(server), Servers(kafka=kafka, crash=crash)
            request.addfinalizer(engine.dispose)
        else:
            engine, servers = request.getfixturevalue(case.database), Servers(kafka=kafka)
        report = Run(case.cell, engine, tmp_path, servers).report()
        return f"{case.cell}: {report}" if report.findings else ""

    return run


def new_database(server: Engine) -> Engine:
    """An engine on a database that nobody has used."""
    with server.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        count = connection.execute(text("SELECT count(*) FROM pg_database")).scalar_one()
        connection.execute(text(f"CREATE DATABASE ledger_{count}"))
    return create_engine(server.url.set(database=f"ledger_{count}"))


SELDOM: Final = [asked_again(2), *[campaign(name, seed=1, kills=2) for name in ("sqlite", "mariadb")]]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "case",
    [
        *grouped([*cases(), asked_again(1), campaign("postgresql", seed=1, kills=2)]),
        *grouped(SELDOM, pytest.mark.long),
    ],
)
def test_nothing_is_lost_doubled_or_out_of_order(findings: Findings, case: Case) -> None:
    assert findings(case) == ""


@pytest.mark.parametrize(
    "case", grouped(at_random(SEED, max(1, KILLS), KILLS), *([] if IS_LONG else [pytest.mark.in_turn]))
)
def test_nothing_is_lost_whatever_comes_after_what(findings: Findings, case: Case) -> None:
    assert findings(case) == ""


def test_every_pair_of_output_handover_and_history_is_there() -> None:
    handovers = [handover for some in ABREAST for handover in some]
    met = set().union(*[case.pairs() for case in cases()])
    wanted = {*product(OUTPUTS, HISTORIES), *product(OUTPUTS, handovers), *product(HISTORIES, handovers)}
    assert wanted - met == set()
