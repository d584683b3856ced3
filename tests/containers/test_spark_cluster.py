"""The profile `spark` of the tour: a master and two workers in containers convert a backlog from PostgreSQL; one worker is killed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from tests.containers.touring import PROJECT, Tour, until

pytestmark = pytest.mark.containers

ROWS: Final = 20_000
URL: Final = "postgresql+psycopg://eventlog:tour@postgres/app"


@pytest.fixture
def cluster(tour: Tour, spark_image: str) -> Tour:
    """The tour with a master and two workers, and a backlog that nobody publishes."""
    tour.compose("up", "--detach", "--scale", "spark-worker=2", "postgres", "spark-worker", profiles=("spark",))
    tour.once("prepare", "eventlog install; eventlog track usr --child usr_phone")
    tour.psql(f"INSERT INTO usr SELECT n, 'Jack', 'Frost' || n FROM generate_series(1, {ROWS}) AS n")
    until(lambda: tour.inside("spark-master", "python", "-c", ASKING).strip() == "2", 120, "the workers do not come")
    return tour


ASKING: Final = (
    "import json, urllib.request; page = json.load(urllib.request.urlopen('http://127.0.0.1:8080/json/'));"
    " print(page['aliveworkers'])"
)


def converting(tour: Tour, out: str) -> Callable[[], str]:
    """A driver of its own in the tour's network."""
    words = ("convert", URL, "--out", f"/data/{out}", "--engine", "spark", "--master", "spark://spark-master:7077")
    place = ("--network", f"{PROJECT}_default", "--volumes-from", tour.container("spark-master"), "--no-healthcheck")
    limits = ("--conf", "spark.executor.memory=700m", "--conf", "spark.cores.max=2")
    return lambda: tour.engine.do(
        "run", "--rm", *place, "--entrypoint", "eventlog", "eventlog-spark", *words, *limits, seconds=500, both=True
    )


def told(tour: Tour, out: str) -> int:
    """How many users the documents add."""
    script = f"test -e /data/{out}/_SUCCESS && cat /data/{out}/*.xml | grep -o '<add ' | wc -l"
    return int(tour.inside("spark-master", "sh", "-c", script))


def test_two_workers_convert_a_backlog_and_one_may_die(cluster: Tour) -> None:
    converting(cluster, "whole")()
    assert told(cluster, "whole") == ROWS
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(converting(cluster, "killed"))
        until(
            lambda: "RUNNING" in cluster.inside("spark-master", "python", "-c", ASKING_APPS), 120, "it does not begin"
        )
        cluster.engine.do("kill", cluster.container("spark-worker").split()[0])
        working.result()
    assert told(cluster, "killed") == ROWS


ASKING_APPS: Final = (
    "import json, urllib.request; page = json.load(urllib.request.urlopen('http://127.0.0.1:8080/json/'));"
    " print([app['state'] for app in page['activeapps']])"
)
