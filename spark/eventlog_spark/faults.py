"""Carries eventlog's errors from Spark's workers to the driver, where Spark leaves only a text of
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
from msgspec import Struct

from eventlog.core import errors
from eventlog.core.errors import EventlogError, MachineError, shortened
from eventlog_spark.workers import settle

_OPENING: Final = "eventlog-fault:"
_fault_in = re.compile(rf"{_OPENING}([0-9a-f]+);").search
_python = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Interrupt)\b.*)$", re.MULTILINE).findall


class Fault(Struct, frozen=True, kw_only=True):
    """An error of eventlog, ready to travel."""

    kind: str
    message: str
    hint: str | None = None
    may_pass: bool = False


class FaultError(Exception):
    """An error of eventlog in a text that survives being quoted in other texts."""


@contextmanager
def travelling() -> Iterator[None]:
    """In a worker: errors of eventlog leave it in a form that the driver can read."""
    settle()
    try:
        yield
    except EventlogError as error:
        raise FaultError(written(error)) from error


@contextmanager
def arriving() -> Iterator[None]:
    """In the driver: what was wrong in a worker is raised again as what it was; anything else as a
    MachineError.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        fault = read(text)
        if fault is not None:
            raise fault from error
        # The last Python error that is quoted in what Spark says, else its first line.
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        gist = [*lines[:1], *_python(text)[-1:]] or ["it did not say why"]
        message = f"Spark gave up: {shortened(gist[-1].rstrip('.'), 300)}."
        hint = "Spark's own log says more."
        raise MachineError(message, hint=hint, may_pass=False) from error


def written(error: EventlogError) -> str:
    """The error as a text; hexadecimal, because nothing on the way quotes or breaks that."""
    # Of a class that asks for more than a message it becomes the nearest one above that does not.
    kind = next(kind.__name__ for kind in type(error).__mro__ if _is_plain(kind))
    may_pass = getattr(error, "may_pass", False)
    fault = Fault(kind=kind, message=error.message, hint=error.hint, may_pass=may_pass)
    return f"{_OPENING}{msgspec.json.encode(fault).hex()};"


def read(text: str) -> EventlogError | None:
    """The error that a text carries, if it does."""
    match = _fault_in(text)
    if match is None:
        return None
    fault = msgspec.json.decode(bytes.fromhex(match[1]), type=Fault)
    kind: type[EventlogError] = getattr(errors, fault.kind)
    if issubclass(kind, MachineError):
        return kind(fault.message, hint=fault.hint, may_pass=fault.may_pass)
    return kind(fault.message, hint=fault.hint)


def _is_plain(kind: type) -> bool:
    """Whether a class of errors can be found by its name and is made of a message and a hint
    alone.
    """
    maker = next(parent for parent in kind.__mro__ if "__init__" in vars(parent))
    is_known = getattr(errors, kind.__name__, None) is kind
    return maker in (EventlogError, MachineError) and is_known
