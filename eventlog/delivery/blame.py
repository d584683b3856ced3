"""Whose fault an error is: what goes wrong in the code of a format or a sink is that of its output alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from eventlog.core.errors import EX_UNAVAILABLE, ConfigError, EventlogError, MachineError, OutputError, shorten
from eventlog.core.seams import SinkCapabilities


def describe_error(error: Exception) -> str:
    """Describe an error; one without a sentence of ours begins with its class."""
    if isinstance(error, EventlogError):
        return str(error)
    return f"{type(error).__name__}: {shorten(str(error), 200)}".rstrip(": ").rstrip(".") + "."


def refuse_fault(error: Exception | None) -> None:
    """Raise an error no single row causes: OutputError, or one that may pass."""
    if isinstance(error, ConfigError):
        raise OutputError(error.message, hint=error.hint, exit_code=error.exit_code) from error
    if isinstance(error, (MachineError, MemoryError, OSError)):
        raise error


def blame(error: Exception) -> Exception:
    """Return the error to raise for one in a plug-in's code: OutputError, or itself if it may pass."""
    if isinstance(error, (MachineError, MemoryError, OSError)):
        return error
    exit_code = error.exit_code if isinstance(error, EventlogError) else EX_UNAVAILABLE
    return OutputError(describe_error(error), exit_code=exit_code)


class Guarded:
    """A sink or a lane; an error in its code is its output's fault."""

    def __init__(self, guarded: Any) -> None:
        self._guarded = guarded
        for name in ("open", "last", "resolve", "prepare", "commit"):
            if hasattr(guarded, name):
                setattr(self, name, _guard(getattr(guarded, name)))
        known = getattr(type(guarded), "capabilities", None)
        # Most have the same for ever.
        if isinstance(known, SinkCapabilities):
            self.capabilities = known

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._guarded, name)
        if name == "capabilities" and found.lanes:
            return replace(found, lanes=[Guarded(lane) for lane in found.lanes])
        return found


def _guard(call: Callable[..., Any]) -> Callable[..., Any]:
    def call_guarded(*given: Any) -> Any:
        try:
            return call(*given)
        except Exception as error:
            raise blame(error) from error

    return call_guarded


class BrokenOutput:
    """Stands for the format and the sink of an output that could not be made: who opens it learns why."""

    capabilities = SinkCapabilities()
    suffix = ""
    counts = False

    def __init__(self, error: Exception) -> None:
        self._error = error

    def _fail(self, *_: object) -> Any:
        raise self._error

    open = last = resolve = prepare = commit = writer = bind = _fail

    def heartbeat(self) -> None:
        """Do nothing: it has nothing to say."""

    def close(self) -> None:
        """Do nothing: nothing was opened."""
