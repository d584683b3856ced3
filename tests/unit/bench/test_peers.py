"""The peers: they tell the same changes, what cannot be measured is said with its reason, and what is fetched is pinned."""

from __future__ import annotations

import re

from bench.backlog import PER_CHANGE
from bench.measure import Timing
from bench.peers import publish, spark
from bench.peers.fetched import PINNED
from bench.spark.ground import Ground


def timing(name: str, seconds: float) -> Timing:
    return Timing(name=name, units=10, seconds=(seconds,))


def test_every_package_that_is_fetched_has_a_version_and_a_hash() -> None:
    requirements = re.sub(r"^#.*\n", "", PINNED.read_text(), flags=re.MULTILINE).replace("\\\n", "").splitlines()
    assert requirements
    assert all(re.fullmatch(r"[a-z0-9]+==[\d.]+ +--hash=sha256:[0-9a-f]{64}", line) for line in requirements)


def test_a_promise_about_a_peer_is_measured_only_beside_it() -> None:
    ours = {publish.OURS: timing(publish.OURS, 1.0)}
    [alone] = publish.targets_of(ours)
    events, changes = publish.targets_of({**ours, publish.DEBEZIUM: timing(publish.DEBEZIUM, 4.0)})
    assert alone.promise == "runs without peers"
    assert (events.measured, events.reached) == (f"{4 * PER_CHANGE:.1f} times", True)
    assert (changes.measured, changes.reached) == ("4.0 times", False)
    timings = {spark.OURS: timing(spark.OURS, 1.0), spark.NAIVE: timing(spark.NAIVE, 6.0)}
    [naive] = spark.targets_of(timings, ground=Ground())
    assert (naive.measured, naive.reached) == ("6.0 times", True)
