"""What the columns of a target hold beyond what their types say: a fact of each kind of target, which its
format asks before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from eventlog.core.model import Value
from eventlog.core.sql_types import Category


class ColumnLimits(Struct, frozen=True, kw_only=True):
    """What a target's columns can hold.

    `sized` says that numbers are no longer than their types, and `single` that REAL is of single
    precision. `exact_nan` says that an exact number may be NaN; `nan` and `infinite` say so of binary
    fractions, and `nul` that a text may hold a NUL.
    """

    sized: bool = True
    single: bool = True
    exact_nan: bool = False
    nan: bool = True
    infinite: bool = True
    nul: bool = True
    beyond: Callable[[str, Category, str], Value] | None = None
    """Reads a text that is no value of Python's as the target takes it, by the column's type and category; None
    where the target does not hold it either. Without it a target holds nothing of the kind.
    """
