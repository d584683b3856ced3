"""Ctrl-C while Spark works: the command is broken off, and nobody is shown a trace of Py4J."""

from __future__ import annotations

import subprocess
import sys

import pytest

from eventlog_spark import cluster
from tests.spark.processes import JAVA_OPTIONS

PROGRAM = """
import os, signal, sys, threading, time
from contextlib import contextmanager
from eventlog_spark.cluster import Cluster, session

signal.signal(signal.SIGINT, signal.default_int_handler)
conf = {"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": sys.argv[1]}

@contextmanager
def told():
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted")

with told(), session(Cluster(master="local[1]", conf=conf)) as spark:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def interrupt():
        while not spark.sparkContext.statusTracker().getActiveStageIds():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    spark.range(10**13).selectExpr("sum(hash(id))").collect()
"""


@pytest.mark.in_turn
def test_ctrl_c_does_what_it_did_and_an_interrupted_job_leaves_no_trace(java: None) -> None:
    """A process of its own, because signals are the main thread's."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, JAVA_OPTIONS], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


class Stopped:
    """A session that ends well."""

    def stop(self) -> None:
        pass


@pytest.mark.parametrize("begun", [KeyboardInterrupt, ValueError])
def test_what_fails_on_the_way_out_of_an_interruption_is_one(
    monkeypatch: pytest.MonkeyPatch, begun: type[BaseException]
) -> None:
    monkeypatch.setattr(cluster, "_running", lambda: None)
    monkeypatch.setattr(cluster, "start", lambda *_, **__: Stopped())
    failure = OSError("Answer from Java side is empty")
    failure.__context__ = begun()
    seen = KeyboardInterrupt if begun is KeyboardInterrupt else OSError
    with pytest.raises(seen), cluster.session(cluster.Cluster(master="local[1]")):
        raise failure
