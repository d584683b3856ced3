"""A ledger of versions for every output and every handover: what was committed is there once, in order, with its letter.

`python -m tests.hardening ledger --handovers 200 --kills 1000 --seed N` is the long run. Its figures are kept after each
case; the same command goes on after the last one.
"""

from __future__ import annotations

import os
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
    at_random,
    campaign,
    case,
    cases,
)
from tests.hardening.ledger.figures import Asked, Tally, begun
from tests.hardening.ledger.runs import Cell, Report, Run, Servers
from tests.hardening.troubles import own_server
from tests.support.servers_kafka import Broker

LONG: Final = "EVENTLOG_LEDGER" in os.environ
SEED, HANDOVERS, KILLS, *OF = os.environ.get("EVENTLOG_LEDGER", "1 1 0").split()
"""How much is tried at random; figures are kept of a run that was asked for."""

AT_RANDOM: Final = at_random(int(SEED), int(HANDOVERS), int(KILLS), *OF)
ASKED: Final = Asked(
    seed=int(SEED), handovers=int(HANDOVERS), kills=int(KILLS), cases=len(AT_RANDOM), outputs="".join(OF)
)
LEFT: Final = AT_RANDOM[begun(ASKED, ASKED.path).runs :] if LONG else AT_RANDOM

Crashing = tuple[Engine, Callable[[], None]]


def grouped(found: Iterable[Case], *others: pytest.MarkDecorator) -> list[Any]:
    """The cases, those that need a broker where all tests of brokers are; a server that crashes is made once too."""
    groups = {"kafka": "kafka", "faulty-kafka": "kafka", "campaign": "kafka", CRASHING: "ledger on a server of its own"}
    return [
        pytest.param(case, id=str(case), marks=[*others, *([pytest.mark.xdist_group(name)] if name else [])])
        for case in found
        for name in [groups.get(case.outputs) or groups.get(case.database)]
    ]


@pytest.fixture(scope="module")
def crashing() -> Iterator[Crashing]:
    """A PostgreSQL server of our own, and what stops it at once and starts it again."""
    with own_server() as found:
        yield found


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    """What the cases at random come to."""
    with tempfile.TemporaryDirectory() as folder:
        yield Tally(ASKED, ASKED.path if LONG else Path(folder) / "ledger.json")


@pytest.fixture
def servers(request: pytest.FixtureRequest) -> Callable[[Case], tuple[Engine, Servers]]:
    """The database of a case, and what else it needs."""

    def found(case: Case) -> tuple[Engine, Servers]:
        kafka = (
            request.getfixturevalue("broker").servers if case.outputs in ("kafka", "faulty-kafka", "campaign") else ""
        )
        if case.database != CRASHING:
            return request.getfixturevalue(case.database), Servers(kafka=kafka)
        server, crash = request.getfixturevalue("crashing")
        engine = new_database(server)
        request.addfinalizer(engine.dispose)
        return engine, Servers(kafka=kafka, crash=crash)

    return found


def new_database(server: Engine) -> Engine:
    """An engine on a database that nobody has used."""
    with server.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        count = connection.execute(text("SELECT count(*) FROM pg_database")).scalar_one()
        connection.execute(text(f"CREATE DATABASE ledger_{count}"))
    return create_engine(server.url.set(database=f"ledger_{count}"))


@pytest.mark.in_turn
@pytest.mark.parametrize("case", grouped(cases()))
def test_nothing_is_lost_doubled_or_out_of_order(
    servers: Callable[[Case], tuple[Engine, Servers]], tmp_path: Path, case: Case
) -> None:
    engine, others = servers(case)
    expect_all_well(case.cell, engine, tmp_path, others)


@pytest.mark.parametrize("case", grouped(LEFT, *([] if LONG else [pytest.mark.in_turn])))
def test_nothing_is_lost_whatever_comes_after_what(
    servers: Callable[[Case], tuple[Engine, Servers]], tally: Tally, tmp_path: Path, case: Case
) -> None:
    try:
        engine, others = servers(case)
    except pytest.skip.Exception as missing:
        if LONG:
            pytest.exit(f"A long run leaves nothing out. {missing}")
        raise
    try:
        report = Run(case.cell, engine, tmp_path, others).report()
    except Exception as error:
        tally.broken(case, error)
        raise
    tally.add(case, report)
    assert not report.findings, f"{case.cell}: {report}"


def test_every_pair_of_output_handover_and_history_is_there() -> None:
    handovers = [handover for some in ABREAST for handover in some]
    met = set().union(*[case.pairs() for case in cases()])
    wanted = {*product(OUTPUTS, HISTORIES), *product(OUTPUTS, handovers), *product(HISTORIES, handovers)}
    assert wanted - met == set()


@pytest.mark.in_turn
def test_late_commits_stand_in_a_topic_of_documents(postgresql: Engine, tmp_path: Path, broker: Broker) -> None:
    cell = Cell(outputs=["Kafka XDS"], handovers=["none"] * 4, histories=["late"], objects=100)
    expect_all_well(cell, postgresql, tmp_path, Servers(kafka=broker.servers))


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_document_that_is_asked_for_again_keeps_its_place_when_the_publisher_dies(
    postgresql: Engine, tmp_path: Path, seed: int
) -> None:
    handovers = ["retry and kill"] * 2
    cell = Cell(outputs=["HTTP"], handovers=handovers, seed=seed, objects=150, moods="retry")
    expect_all_well(cell, postgresql, tmp_path)


def expect_all_well(cell: Cell, engine: Engine, folder: Path, servers: Servers | None = None) -> Report:
    """A run of which there is nothing to say."""
    report = Run(cell, engine, folder, servers).report()
    assert not report.findings, f"{cell}: {report}"
    return report


@pytest.mark.long
@pytest.mark.parametrize("database", ["sqlite", "postgresql", "mariadb"])
def test_a_scim_server_has_what_was_committed(request: pytest.FixtureRequest, tmp_path: Path, database: str) -> None:
    seed = int(SEED)
    cell = case(database, "scim", ["late", "hold", "future"], ["kill", "freeze", "kill", "polite stop"], seed=seed).cell
    expect_all_well(cell, request.getfixturevalue(database), tmp_path)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "database", ["sqlite", *[pytest.param(name, marks=pytest.mark.long) for name in ("postgresql", "mariadb")]]
)
def test_a_campaign(request: pytest.FixtureRequest, tmp_path: Path, database: str, broker: Broker) -> None:
    cell = campaign(database, seed=1, kills=2).cell
    report = Run(cell, request.getfixturevalue(database), tmp_path, Servers(kafka=broker.servers)).report()
    assert not report.findings, f"{cell}: {report}"
