"""What the columns of a target hold beyond what their types say: a fact of each kind of target, which its
format asks before anything is sent.
"""

from __future__ import annotations

from msgspec import Struct


class ColumnLimits(Struct, frozen=True, kw_only=True):
    """What a target's columns can hold.

    `sized` says that numbers are no longer than their types, and `single` that REAL is of single
    precision. `exact_nan` says that an exact number may be NaN; `nan` and `infinite` say so of binary
    fractions.
    """

    sized: bool = True
    single: bool = True
    exact_nan: bool = False
    nan: bool = True
    infinite: bool = True
