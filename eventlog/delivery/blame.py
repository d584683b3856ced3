"""Whose fault an error is: what goes wrong in the code of a format or a sink is that of its output alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from eventlog.core.errors import EX_UNAVAILABLE, ConfigError, EventlogError, MachineError, OutputError, shortened


def describe_error(error: Exception) -> str:
    """Say what went wrong; an error that nobody has a sentence for begins with its class."""
    if isinstance(error, EventlogError):
        return str(error)
    return f"{type(error).__name__}: {shortened(str(error), 200)}".rstrip(": ").rstrip(".") + "."


def refuse_fault(error: Exception) -> None:
    """Raise what no single row is to blame for: OutputError, or an error that may pass."""
    if isinstance(error, ConfigError):
        raise OutputError(error.message, hint=error.hint, exit_code=error.exit_code) from error
    if isinstance(error, (MachineError, MemoryError)):
        raise error


@contextmanager
def blame_output() -> Iterator[None]:
    """Raise OutputError for every error but one that may pass."""
    try:
        yield
    except Exception as error:
        refuse_fault(error)
        exit_code = error.exit_code if isinstance(error, EventlogError) else EX_UNAVAILABLE
        raise OutputError(describe_error(error), exit_code=exit_code) from error


class Guarded:
    """A sink or a lane; an error in its code is its output's fault."""

    def __init__(self, guarded: Any) -> None:
        self._guarded = guarded

    def __getattr__(self, name: str) -> Any:
        with blame_output():
            found = getattr(self._guarded, name)
        if name == "capabilities":
            return replace(found, lanes=list(map(Guarded, found.lanes))) if found.lanes else found
        if not callable(found):
            return found

        def call(*given: Any) -> Any:
            with blame_output():
                return found(*given)

        return call


class BrokenOutput:
    """Stands for the format and the sink of an output that could not be made: who opens it learns why."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error

    def heartbeat(self) -> None:
        """It has nothing to say."""

    def close(self) -> None:
        """Nothing was opened."""
