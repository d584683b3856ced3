"""The mark of the log that keeps the last proofs of tables at outputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from eventlog.core.proofs import LastProof

MOST_TABLES: Final = 1000
"""So many tables at outputs are compared regularly, so that the mark has an end."""


def read_proofs(text: str | None) -> tuple[LastProof, ...]:
    """Read the proofs of a mark; none for a missing or unreadable one: nothing depends on it."""
    try:
        if text is None:
            return ()
        return msgspec.json.decode(text, type=tuple[LastProof, ...])
    except msgspec.DecodeError:
        return ()


def write_proofs(proofs: Iterable[LastProof]) -> str:
    """Write the proofs for the mark."""
    return msgspec.json.encode(tuple(proofs)[:MOST_TABLES]).decode()
