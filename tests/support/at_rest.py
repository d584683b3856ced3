"""What the journal of a log must not have once nothing waits, and what its records say of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Ask = Callable[[str], Sequence[Any]]
"""Asks the log's database."""

KEPT: Final = ("batch", "planned", "parked", "hold", "answer")
"""The tables that have nothing at rest."""

RECORDED: Final = (
    "SELECT kept.record_id, kept.status, entry.status, kept.reason FROM event_log_outcome kept"
    " LEFT JOIN event_log entry ON entry.record_id = kept.record_id"
)
"""How each row ended by its record, and by its own status; without one a record outlives its row."""


def find_left(ask: Ask, log: str = "event_log") -> Mapping[str, Sequence[Any]]:
    """Map the tables of the journal that are not at rest to their rows."""
    found = {name: ask(f"SELECT * FROM {log}_{name}") for name in KEPT}
    return {name: rows for name, rows in found.items() if rows}
