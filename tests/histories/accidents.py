"""What may go wrong in a history, each switchable: deaths, errors, ambiguous ends, whims of
receivers, and operators' acts.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Accidents(Struct, frozen=True, kw_only=True):
    """How likely each is: of `kills` to `freezes` at each point, of the others at each turn or
    document; 0 is never.

    A point is just before, or just after, a statement, a commit, a change of a folder or a call of
    a sink.
    """

    kills: float = 0.0
    sql_errors: float = 0.0
    """A statement or a commit fails, or succeeds and is reported as an error; the process lives on."""
    file_errors: float = 0.0
    sink_errors: float = 0.0
    freezes: float = 0.0
    """A publisher stops in the middle and goes on after another one took over."""
    interruptions: float = 0.03
    """Writers and operators act in the middle of what a publisher does."""

    away: float = 0.0
    """A receiver answers 503, and has taken nothing."""
    retry: float = 0.0
    partial_retry: float = 0.0
    refused: float = 0.0
    warned: float = 0.0
    unreadable: float = 0.0
    """A receiver answers what nobody can read, and has taken nothing."""
    unreadable_taken: float = 0.0
    cut_off: float = 0.0
    """The connection breaks before a document was taken."""
    cut_off_taken: float = 0.0

    holds: float = 0.0
    deletes: float = 0.0
    letters: float = 0.0
    """Somebody writes a letter of his own on a waiting row."""
    setbacks: float = 0.0
    """Somebody requeues a row, or writes N on it."""
    pauses: float = 0.0
    skips: float = 0.0
    additions: float = 0.0
    """An output is added, which takes a new start of the publisher."""
    removals: float = 0.0
    """An output is taken out of the configuration and forgotten."""
    renames: float = 0.0
    purges: float = 0.0
    restarts: float = 0.0
    numbers_again: float = 0.0
    holes: float = 0.05
    keyless: float = 0.02
    filters: float = 0.3
    """How many of the outputs leave a table out."""


CALM: Final = Accidents(interruptions=0.0, holes=0.0, keyless=0.0, filters=0.0)
"""Nothing but rows that come."""

EVERYTHING: Final = Accidents(
    kills=0.0015,
    sql_errors=0.002,
    file_errors=0.003,
    sink_errors=0.01,
    freezes=0.002,
    away=0.03,
    retry=0.04,
    partial_retry=0.04,
    refused=0.03,
    warned=0.03,
    unreadable=0.03,
    unreadable_taken=0.03,
    cut_off=0.02,
    cut_off_taken=0.03,
    holds=0.05,
    deletes=0.01,
    letters=0.01,
    setbacks=0.02,
    pauses=0.01,
    skips=0.005,
    additions=0.004,
    removals=0.003,
    renames=0.003,
    purges=0.005,
    restarts=0.004,
    numbers_again=0.003,
)
"""What any heart should survive."""
