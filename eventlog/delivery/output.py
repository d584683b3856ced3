"""Where documents go, and how each output stands: a mark of the log tells it to others."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from eventlog.core.model import Position
from eventlog.core.seams import Format, Sink
from eventlog.sources.marks import value_of


class Output(Struct, frozen=True, kw_only=True):
    """Where documents go: a format and the sink that takes it.

    Rows may still wait for it under one of its `former_names`. `answers` says that a receiver
    judges each document, `whole` that transactions go out in one piece, `refuses_objects` that a value which
    the format cannot write refuses its change, with all that this brings.
    """

    format: Format
    sink: Sink
    name: str = "output"
    former_names: tuple[str, ...] = ()
    answers: bool = False
    whole: bool = False
    refuses_objects: bool = False


class OutputState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last document that an output took with its last position, and the last error.

    Times are seconds since 1970. `documents` have been taken since the publisher began.
    `failing_since` is the first error behind the last document; it counts while the output fails.
    """

    document: str = ""
    position: Position | None = None
    at: float | None = None
    error: str | None = None
    failed_at: float | None = None
    documents: int = 0
    failing_since: float | None = None

    @property
    def is_failing(self) -> bool:
        """Return True if it did not take its last documents."""
        return self.failed_at is not None and self.failed_at > (self.at or 0.0)

    @property
    def latest(self) -> float:
        """Return the time at which something became of a document last."""
        return max(self.at or 0.0, self.failed_at or 0.0)

    @property
    def began_to_fail(self) -> float | None:
        """Return the time of the first failure; None if it does not fail."""
        return self.failing_since if self.is_failing else None


OutputStates = Mapping[str, OutputState]
"""How the outputs stand, by the names that their notes have."""


def failing(states: OutputStates) -> bool:
    """Return True if an output did not take its last documents."""
    return any(state.is_failing for state in states.values())


def read_output_states(text: str | None) -> dict[str, OutputState]:
    """Read noted states; empty if unreadable."""
    return value_of(text, dict[str, OutputState]) or {}
