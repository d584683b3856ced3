"""Answers to changes: what one stops, and which of several answers counts."""

from __future__ import annotations

from typing import Literal, TypeVar

from msgspec import Struct

from eventlog.core.model import SEVERITY, Outcome, Status

Key = TypeVar("Key")


class Strictness(Struct, frozen=True, kw_only=True):
    """What an answer that is no success stops: everything, or only the object that it speaks of."""

    on_retry: Literal["stop", "object"] = "stop"
    on_error: Literal["continue", "halt"] = "continue"

    def ends(self, status: Status) -> bool:
        """Return True if nothing more may be sent after an answer with this status."""
        return status is Status.FATAL or (status is Status.ERROR and self.on_error == "halt")


def keep_worse(answers: dict[Key, Outcome], key: Key, outcome: Outcome) -> None:
    """Adds an answer under this key, unless a worse one is there."""
    earlier = answers.get(key)
    if earlier is None or SEVERITY[outcome.status] > SEVERITY[earlier.status]:
        answers[key] = outcome
