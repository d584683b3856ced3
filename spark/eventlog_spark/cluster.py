"""Starts Spark: quiet, quick, with the Java that is there and with the driver's own Python in its
workers.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from eventlog.core.errors import ConfigError, MachineError
from eventlog.core.packages import require_spark
from eventlog_spark.faults import java_ended, java_status
from eventlog_spark.java import LAUNCHER, find_java
from eventlog_spark.this_python import VARIABLE, is_named_by_somebody

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

EVERYWHERE: Final = {
    # The number of partitions is ours to say, it is known what is in them.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxBytesPerBatch": "33554432",
    "spark.ui.showConsoleProgress": "false",
}
LOCALLY: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
HIDING: Final = {"spark.io.encryption.enabled": "true"}
"""What is spilled and shuffled holds the values that a policy hides, on the disks of all who
work.
"""

_PYTHON: Final = "spark.pyspark.python"
"""Only spark-submit reads this setting; PySpark takes the variable."""

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOGGING: Final = f"-Dlog4j2.configurationFile={(LAUNCHER / 'log4j2.properties').as_uri()}"

_PY4J_LOGGERS: Final = (None, "py4j.clientserver", "py4j.java_gateway")
"""Where Py4J logs that a command was interrupted: at the root too."""


class Cluster(Struct, frozen=True, kw_only=True):
    """Where Spark runs. Without a master it is the one that spark-submit said, else all cores of
    this machine.
    """

    master: str | None = None
    conf: Mapping[str, str] = {}


def read_conf(settings: tuple[str, ...]) -> dict[str, str]:
    """Read Spark's settings from a command line, KEY=VALUE each."""
    pairs = [setting.partition("=") for setting in settings]
    wrong = [key for key, equals, _ in pairs if not equals or not key]
    if wrong:
        example = "spark.executor.memory=4g"
        raise ConfigError(f"--conf {wrong[0]} is not written KEY=VALUE, as in {example}.")
    return {key: value for key, _, value in pairs}


@contextmanager
def session(cluster: Cluster, *, hiding: bool = False) -> Iterator[SparkSession]:
    """Yield a session and stop it after the block; use a running one, of a notebook or
    spark-submit, and leave it.

    With `hiding` Spark encrypts its shuffled and spilled files.
    """
    running = _running()
    if running is not None:
        yield running
        return
    started = start(cluster, hiding=hiding)
    try:
        yield started
    except Exception as error:
        if _interrupted(error):
            # Ctrl-C was the first error; Py4J failed on the way out of it.
            raise KeyboardInterrupt from None
        status = java_status() if _is_unanswered(error) else None
        if status is not None:
            raise java_ended(status) from error
        raise
    finally:
        _stop(started)


def _stop(spark: SparkSession) -> None:
    """Stop the session; if its Java is gone, forget both, so another session can begin."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    try:
        spark.stop()
    except Exception as error:
        if not _is_unanswered(error) or java_status() is None:
            raise
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None  # noqa: SLF001  # what `stop` does
        SparkSession._instantiatedSession = None  # noqa: SLF001  # the same


def _is_unanswered(error: BaseException | None) -> bool:
    """Return True for PySpark's errors about a Java without an answer."""
    from py4j.protocol import Py4JError, Py4JJavaError

    return isinstance(error, ConnectionError | Py4JError) and not isinstance(error, Py4JJavaError)


@contextmanager
def configured(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    """Change a setting of Spark's during the block."""
    former = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, former or value)


def start(cluster: Cluster, *, hiding: bool = False) -> SparkSession:
    """Start a session; ConfigError or MachineError says in a sentence why there is none."""
    require_spark()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    # spark-submit has started a Java already, and waits for us at this port.
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    # Spark finds a YARN by files, and ends without a word of ours where there are none.
    knows_yarn = {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & os.environ.keys()
    if (cluster.master or "").startswith("yarn") and not knows_yarn:
        hint = "Name the folder of its yarn-site.xml in HADOOP_CONF_DIR."
        raise ConfigError("Nobody says where YARN is.", hint=hint)
    java: dict[str, str] = {}
    if not submitted:
        java = find_java(os.environ).environment(alone=is_local(cluster.master))
    with _environment(cluster, java), _interrupted_as_usual():
        try:
            conf = _configured(cluster, submitted=submitted, hiding=hiding)
            return SparkSession.builder.config(conf=conf).getOrCreate()
        except PySparkException as error:
            message = f"Spark does not start: {_first_line(error)}"
            hint = "With --conf spark.log.level=WARN Spark says more."
            raise MachineError(message, hint=hint, may_pass=False) from error


@contextmanager
def _interrupted_as_usual() -> Iterator[None]:
    """Keep Python's own Ctrl-C, and silence Py4J's traces of it.

    PySpark would answer Ctrl-C with a question to Spark in the middle of another one, which fails.
    """
    former = signal.getsignal(signal.SIGINT)
    for name in _PY4J_LOGGERS:
        logging.getLogger(name).addFilter(_is_no_interruption)
    yield
    # Only the main thread may say who hears signals.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, former)


def _is_no_interruption(record: logging.LogRecord) -> bool:
    """Return False for log records about a Ctrl-C, its consequences, or an ended Java.

    An ended Java has an error of ours.
    """
    if record.exc_info is None:
        return True
    error = record.exc_info[1]
    return not _interrupted(error) and not (_is_unanswered(error) and java_status() is not None)


def _interrupted(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _configured(cluster: Cluster, *, submitted: bool, hiding: bool) -> SparkConf:
    from pyspark import SparkConf

    conf = SparkConf()
    if not submitted:
        conf.setMaster(cluster.master or "local[*]")
    elif cluster.master:
        raise ConfigError("--master was given, but spark-submit has set it already.", hint="Leave it out.")
    conf.setAppName("eventlog convert")
    settings = dict(EVERYWHERE)
    if is_local(conf.get("spark.master", "")):
        settings |= LOCALLY
    if hiding:
        settings |= HIDING
    # Last, so that what somebody has said counts.
    settings |= cluster.conf
    # Java takes its options in one text, so ours would take the place of theirs.
    options = [settings.get(_JAVA_OPTIONS, "")]
    if "spark.log.level" not in cluster.conf:
        options.insert(0, _LOGGING)
    settings[_JAVA_OPTIONS] = " ".join(filter(None, options))
    for key, value in settings.items():
        conf.set(key, value)
    return conf


def is_local(master: str | None) -> bool:
    """Return True if Spark runs in one process of this machine."""
    return (master or "local").startswith("local")


def _running() -> SparkSession | None:
    """Return the session of this process, if any thread has started one."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkException:
        return None


@contextmanager
def _environment(cluster: Cluster, java: Mapping[str, str]) -> Iterator[None]:
    """Set the variables for Spark's start, and restore them after the block.

    Workers take the driver's Python unless another one is named, because any other would lack
    eventlog or pickle differently. The nodes of a cluster would look for a driver called localhost
    at themselves.
    """
    changed = dict(java)
    workers = cluster.conf.get(_PYTHON, sys.executable)
    pythons = {VARIABLE: workers, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if not is_named_by_somebody():
        changed[VARIABLE] = pythons.pop(VARIABLE)
    changed |= {name: program for name, program in pythons.items() if name not in os.environ}
    if is_local(cluster.master) and "SPARK_LOCAL_IP" not in os.environ:
        changed["SPARK_LOCAL_HOSTNAME"] = "localhost"
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
