"""Carries eventlog's errors from Spark's workers to the driver, where Spark leaves only a text of
them.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import unquote
from zlib import crc32

from eventlog.convert.inputs import describe_damage
from eventlog.core import errors
from eventlog.core.errors import DataError, EventlogError, MachineError, shorten
from eventlog_spark.workers import freeze_heap

_mark: Final = re.compile(r" \[eventlog (\w+) (\d+) (\d+) ([01]) ([0-9a-f]{8})\]").finditer
"""The mark behind an error's text: its class, the characters of its sentence and of its hint, whether
it may pass, and a checksum of the text.
"""

_failed_file = re.compile(r"\[FAILED_READ_FILE[^]]*\] Encountered error while reading file (\S+?)\.\s").search
_broken = re.compile(
    r"Caused by: (?:java\.io\.EOFException|java\.util\.zip\.\w+|java\.io\.IOException(?=.*(?:gzip|header|CRC))): (.*)"
).search

END_SECONDS: Final = 0.5
"""How long a Java that does not answer is waited for until it counts as running."""

_python = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Interrupt)\b.*)$", re.MULTILINE).findall


class FaultError(Exception):
    """An error of eventlog whose text says what is wrong and what to do, wherever Spark shows it."""


@contextmanager
def travelling() -> Iterator[None]:
    """Encode eventlog's errors in a worker, so the driver can read them."""
    freeze_heap()
    try:
        yield
    except EventlogError as error:
        raise FaultError(write_error(error)) from error


@contextmanager
def arriving() -> Iterator[None]:
    """Raise a worker's error in the driver as the original one; anything else as a MachineError."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        # Whatever Java says of itself, it runs.
        status = None if isinstance(error, PySparkException | Py4JJavaError) else java_status()
        if status is not None:
            raise java_ended(status) from error
        if isinstance(error, ConnectionError):
            raise
        text = str(error)
        fault = read(text)
        if fault is not None:
            raise fault from error
        unread = _unread_file(text)
        if unread is not None:
            raise unread from error
        # The last Python error that is quoted in what Spark says, else its first line.
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        gist = [*lines[:1], *_python(text)[-1:]] or ["it did not say why"]
        message = f"Spark gave up: {shorten(gist[-1].rstrip('.'), 300)}."
        hint = "Spark's own log says more."
        raise MachineError(message, hint=hint, may_pass=False) from error


def _unread_file(text: str) -> DataError | None:
    """Find the packed file that ends too early or is none, in what Java says of it; None if it says something else."""
    file, cause = _failed_file(text), _broken(text)
    return None if file is None or cause is None else describe_damage(unquote(file[1]), Exception(cause[1]))


def java_status() -> int | None:
    """Return the exit status of this process's Java for Spark; None while it runs."""
    context = sys.modules.get("pyspark.core.context")
    gateway = getattr(getattr(context, "SparkContext", None), "_gateway", None)
    # One that spark-submit has started is not our process.
    process = getattr(gateway, "proc", None)
    if process is None:
        return None
    # A connection breaks some moments before the process is gone.
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=END_SECONDS)
    status: int | None = process.poll()
    return status


def java_ended(status: int) -> MachineError:
    """Make the error for an ended Java: PySpark says only that nobody answers."""
    how = f"with status {status}"
    if status < 0:
        how = f"by the signal {signal.Signals(-status).name}"
    hint = "Its memory may have been too little: --conf spark.driver.memory=4g, or smaller files; then run it again."
    return MachineError(f"Spark's Java ended {how} while it worked.", hint=hint, may_pass=False)


def write_error(error: EventlogError) -> str:
    """Write the error for people, with a mark behind it for `read` to find its begin and end."""
    # Of a class that asks for more than a message it becomes the nearest one above that does not.
    kind = next(kind.__name__ for kind in type(error).__mro__ if _is_plain(kind))
    # Half a character cannot leave a worker.
    message, hint = (_sendable(text or "") for text in (error.message, error.hint))
    text = f"{message} {hint}" if hint else message
    may_pass = int(getattr(error, "may_pass", False))
    return f"{text} [eventlog {kind} {len(message)} {len(hint)} {may_pass} {_checksum(text)}]"


def read(text: str) -> EventlogError | None:
    """Find the error quoted in a text; None if there is none, or if its words were changed."""
    for mark in _mark(text):
        name, message_size, hint_size, again, checksum = mark.groups()
        size = int(message_size) + (1 + int(hint_size) if int(hint_size) else 0)
        quoted = text[max(0, mark.start() - size) : mark.start()]
        kind = getattr(errors, name, None)
        if _checksum(quoted) != checksum or not isinstance(kind, type) or not issubclass(kind, EventlogError):
            continue
        message, hint = quoted[: int(message_size)], quoted[int(message_size) + 1 :] or None
        if issubclass(kind, MachineError):
            return kind(message, hint=hint, may_pass=again == "1")
        return kind(message, hint=hint)
    return None


def _sendable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _checksum(text: str) -> str:
    return f"{crc32(text.encode('utf-8', 'replace')):08x}"


def _is_plain(kind: type) -> bool:
    """Return True if a class of errors has a name here, and takes a message and a hint."""
    maker = next(parent for parent in kind.__mro__ if "__init__" in vars(parent))
    is_known = getattr(errors, kind.__name__, None) is kind
    return maker in (EventlogError, MachineError) and is_known
