"""The tour runs: a change becomes a document, parts stop and start in any order, the previous image is replaced; nothing is lost."""

from __future__ import annotations

import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Engine, text

from tests.containers.touring import Tour, until
from tests.hardening.ledger.book import Ledger
from tests.hardening.ledger.checking import Finding, check
from tests.hardening.ledger.outputs import XdsFiles
from tests.hardening.ledger.runs import read_log, waiting
from tests.hardening.ledger.writers import TABLES, Writer, at_work
from tests.support.containers import ROOT, ContainerEngine, base_image

pytestmark = pytest.mark.containers

TOKEN: Final = "the-token-of-the-tour"  # noqa: S105  # it stands in docker/compose.yaml
STOPS: Final = 50
SEED: Final = 39
PREVIOUS: Final = "643b2496"
"""The commit that was 0.2.0."""


@pytest.fixture
def begun(tour: Tour) -> Tour:
    """The tour while it runs, as `docker compose up --detach` leaves it."""
    tour.compose("up", "--detach")
    until(lambda: tour.asked("/ready")[0] == 200, why="the publisher is not ready")
    return tour


def test_a_change_is_seen_in_the_document_the_page_and_the_metrics(begun: Tour) -> None:
    begun.psql("INSERT INTO usr VALUES (1, 'Jack', 'Frost'); INSERT INTO usr_phone VALUES (1, '555')")
    until(lambda: "Frost" in begun.documents() and "555" in begun.documents())
    assert "usr" in begun.inside("publisher", "eventlog", "log")
    status, page = begun.asked("/", TOKEN)
    assert status == 200
    assert "event_log" in page
    assert begun.asked("/")[0] in (401, 403) or "Frost" not in begun.asked("/")[1]
    figures = begun.asked("/metrics")[1]
    assert re.search(r'^eventlog_state\{.*state="publishing".*\} 1', figures, re.MULTILINE)
    assert sum(float(n) for n in re.findall(r'^eventlog_rows_total\{.*status="S".*\} (\S+)', figures, re.MULTILINE)) >= 4


def test_prepare_may_run_again_and_its_checks_hold(begun: Tour) -> None:
    assert begun.engine.inspect(begun.container("prepare"), "{{.State.ExitCode}}") == "0"
    begun.compose("run", "--rm", "prepare")


def test_its_containers_have_no_rights(begun: Tour) -> None:
    said = begun.inside("publisher", "sh", "-c", "grep CapEff /proc/self/status; touch /opt/x 2>&1; id -u")
    assert "CapEff:\t" + "0" * 16 in said
    assert "Read-only file system" in said
    assert said.split()[-1] == "10001"


def test_the_other_database_is_checked_as_the_page_says(begun: Tour) -> None:
    base_image(begun.engine, "docker.io/library/mariadb:11.4")
    begun.compose("up", "--detach", "mariadb", profiles=("mariadb",))
    until(lambda: begun.engine.inspect(begun.container("mariadb"), "{{.State.Health.Status}}") == "healthy", 120)
    url = "mysql+pymysql://root:tour@mariadb/app"
    for command in (["install"], ["track", "usr", "--child", "usr_phone"]):
        begun.compose("run", "--rm", "--entrypoint", "eventlog", "publisher", *command, "--database", url)
    begun.inside("mariadb", "mariadb", "-ptour", "app", "-e", "INSERT INTO usr VALUES (1, 'Jack', 'Frost')")
    script = f"eventlog run --once --database {url} --out /tmp/out && cat /tmp/out/*.xml"
    loopback = ("-e", "EVENTLOG_PUBLISHER__ALLOW_LOOPBACK=true")  # root made the change, and is the publisher too
    said = begun.compose("run", "--rm", *loopback, "--entrypoint", "sh", "publisher", "-c", script)
    assert "Frost" in said


def test_the_broker_takes_messages(begun: Tour) -> None:
    base_image(begun.engine, "docker.io/apache/kafka:3.9.0")
    begun.compose("up", "--detach", "kafka", profiles=("kafka",))
    until(lambda: begun.engine.inspect(begun.container("kafka"), "{{.State.Health.Status}}") == "healthy", 120)
    begun.compose("stop", "publisher")
    begun.psql("INSERT INTO usr VALUES (7, 'Io', 'Kafka')")
    settings = '[[output]]\nsink = "kafka"\nformat = "messages"\nservers = "kafka:9092"\n'
    script = f"cat > /tmp/e.toml <<'END'\n{settings}END\neventlog run --once --config /tmp/e.toml"
    begun.compose("run", "--rm", "--entrypoint", "sh", "publisher", "-c", script)
    topics = begun.inside("kafka", "/opt/kafka/bin/kafka-topics.sh", "--bootstrap-server", "kafka:9092", "--list")
    assert "usr" in topics


class Watched:
    """The ledger's tables beside those of the tour, and what writes to them from this machine."""

    def __init__(self, tour: Tour) -> None:
        self.tour = tour
        self.database: Engine = tour.database()
        self.ledger = Ledger()
        self.dice = random.Random(SEED)
        with self.database.begin() as connection:
            for statement in ("SET ROLE eventlog", *TABLES):
                connection.execute(text(statement))
        tour.inside("publisher", "eventlog", "track", "thing", "--events", "field")
        tour.inside("publisher", "eventlog", "track", "stock", "--events", "row-back")
        self.writers = [Writer(self.database, self.ledger, number, SEED) for number in (1, 2)]

    def findings(self, folder: Path) -> list[Finding]:
        """What is wrong once nothing waits."""
        until(lambda: not waiting(self.database), 120, "rows wait, and nobody publishes them")
        log = [row for row in read_log(self.database) if row.place[0] in ("thing", "stock")]
        shown = XdsFiles(self.tour.copied(folder).parent).shown()
        return check(self.ledger, log, [shown], Counter())


@pytest.fixture
def watched(begun: Tour) -> Iterator[Watched]:
    made = Watched(begun)
    yield made
    made.database.dispose()


def test_nothing_is_lost_however_parts_stop_and_start(watched: Watched, tmp_path: Path) -> None:
    tour, dice = watched.tour, watched.dice

    def write() -> None:
        writer = dice.choice(watched.writers)
        writer.small(held=dice.uniform(0, 0.1))
        time.sleep(0.02)

    stopped: set[str] = set()
    with at_work(write):
        for _ in range(STOPS):
            part = dice.choice(("postgres", "publisher"))
            how = dice.choice((("stop", "--time", "20"), ("kill",), ("restart", "--time", "20")))
            if part in stopped:
                tour.engine.do("start", tour.container(part))
                stopped.discard(part)
            tour.engine.do(*how, tour.container(part))
            if how[0] != "restart":
                stopped.add(part)
            time.sleep(dice.uniform(0, 0.5))
            for other in dice.sample(sorted(stopped), dice.randint(0, len(stopped))):
                tour.engine.do("start", tour.container(other))
                stopped.discard(other)
        for part in sorted(stopped):
            tour.engine.do("start", tour.container(part))
    until(lambda: tour.asked("/ready")[0] == 200, 120, "the publisher is not ready")
    found = watched.findings(tmp_path / "copy" / "xds")
    assert not found, [str(one) for one in found[:10]]
    assert len(watched.ledger) > 500


@pytest.fixture
def previous_image(container_engine: ContainerEngine, tmp_path: Path) -> str:
    """The image of 0.2.0, from its own Dockerfile and lock."""
    packed = subprocess.run(["git", "archive", PREVIOUS], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        pytest.skip(f"this clone does not go back to {PREVIOUS}, which is 0.2.0")
    folder = tmp_path / "previous"
    folder.mkdir()
    subprocess.run(["tar", "-x"], cwd=folder, input=packed.stdout, check=True)
    container_engine.build("eventlog:0.2.0", folder / "docker" / "Dockerfile", folder)
    return "eventlog:0.2.0"


def test_the_previous_image_is_replaced_while_rows_wait(tour: Tour, previous_image: str, tmp_path: Path) -> None:
    tour.write({name: {"image": previous_image, "build": None} for name in ("prepare", "publisher")})
    tour.compose("up", "--detach")
    until(lambda: tour.asked("/ready")[0] == 200, why="the previous publisher is not ready")
    assert "0.2.0" in tour.inside("publisher", "eventlog", "--version")
    watched = Watched(tour)
    quick = watched.writers[0]

    def write() -> None:
        quick.small()
        time.sleep(0.01)

    with at_work(write):
        time.sleep(3)
        tour.engine.do("kill", tour.container("publisher"))
        time.sleep(2)
        assert waiting(watched.database) > 20
        tour.write()
        tour.compose("run", "--rm", "--no-deps", "--entrypoint", "eventlog", "publisher", "upgrade")
        tour.compose("up", "--detach")
        until(lambda: tour.asked("/ready")[0] == 200, why="the new publisher is not ready")
        assert "0.3.0" in tour.inside("publisher", "eventlog", "--version")
        time.sleep(2)
    found = watched.findings(tmp_path / "copy" / "xds")
    watched.database.dispose()
    assert not found, [str(one) for one in found[:10]]
