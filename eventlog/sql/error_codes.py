"""What errors of a database mean, by their codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

NAME_IS_TAKEN: Final = (
    "Drop what has that name, or give it another one: eventlog replaces only what its registry names."
)
"""The advice where somebody else's trigger is called like one of ours."""

NAME_NEEDS_SCHEMA: Final = (
    "A name without a schema means what comes with the server: write the schema before any other."
)
"""The advice where a name is not found that people wrote without its schema."""


class ErrorCodes(Struct, frozen=True, kw_only=True, eq=False):
    """The codes by which the errors of one database are told apart."""

    passing_codes: frozenset[int | str] = frozenset()
    """Codes of errors that waiting may cure, where the driver's class does not say so."""
    advice: Mapping[int | str, str] = {}
    """What mends an error, or when it passes, by its code."""
    name_codes: frozenset[int | str] = frozenset()
    """Codes of errors about a name that is not found, where ours are looked for in no schema but the server's."""
    code_in_words: str | None = None
    """A regular expression for the code in an error's words, where the driver numbers otherwise."""
    denied_codes: frozenset[int | str] = frozenset()
    """Codes of errors that a right would cure."""
    passing_errors: frozenset[int] = frozenset()
    """Numbers of errors that waiting may cure, where the driver's classes do not tell them."""
    locked_errors: frozenset[int] = frozenset()
    """Those of them that say that another process has locked the whole database."""
    lock_codes: frozenset[int | str] = frozenset()
    """Codes of the error that says that a lock did not come in time."""
    deadlock_codes: frozenset[int | str] = frozenset()
    """Codes of the error that says that two waited for each other, and one was sent away."""
    timeout_codes: frozenset[int | str] = frozenset()
    """Codes of the error that says that a statement took too long, or that somebody ended it."""
    damage_codes: frozenset[int | str] = frozenset()
    """Codes of errors that say that what a table is stored in cannot be read."""
    value_codes: frozenset[int] = frozenset()
    """Codes of errors that are about a value, where the driver's class does not say so."""
    error_number: str | None = None
    """The attribute with the number of a driver's error, where its words do not begin with it."""
    refusals: tuple[str, ...] = ()
    """Words with which a server turns somebody away, where its driver has no number for that."""
