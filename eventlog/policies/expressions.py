"""Conditions and computed values in CEL, by Google's own evaluator: no loops without end, no files,
no Python.

What went wrong with an expression is said without the values that it was about: they may be what a
policy hides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from eventlog.core.errors import ConfigError
from eventlog.core.model import Cell, Value
from eventlog.core.packages import require
from eventlog.core.registry import load_offer, offers
from eventlog.core.sql_types import Category
from eventlog.core.suggest import did_you_mean
from eventlog.policies.values import plain_of

# Finds new.NAME and new["NAME"], and texts so that what stands in them is passed over; a call such
# as new.size() names no attribute.
_mention = re.compile(
    r"""(?P<text>r?"(?:[^"\\]|\\.)*"|r?'(?:[^'\\]|\\.)*')|\b(?P<side>new|old)\b"""
    r"""(?:\s*\.\s*(?P<name>[A-Za-z_]\w*)(?!\s*\()|\s*\[\s*(?:"(?P<double>[^"\\]*)"|'(?P<single>[^'\\]*)')\s*\])?"""
)

# Also finds texts first, for `op` in one is no variable.
_variable = re.compile(
    r"""r?"(?:[^"\\]|\\.)*"|r?'(?:[^'\\]|\\.)*'|\b(?P<name>new|old|op|table)\b""",
)

_REASONS: Final = {
    "NOT_FOUND": "an attribute that it names is not known here",
    "OUT_OF_RANGE": "a number in it is too large",
    "INVALID_ARGUMENT": "a value in it cannot be read as what it must be",
}


class Undecided(Exception):  # noqa: N818  # an outcome, shown in the note of a row
    """The expression has no value for these values; why, without the values."""


class Expression:
    """An expression that was read. `names` are the attributes that it looks at; None: all of them."""

    def __init__(self, text: str, where: str) -> None:
        require("A policy with an expression in CEL", "cel_expr_python")
        from cel_expr_python import cel

        kinds = cel.Type
        row = kinds.Map(kinds.STRING, kinds.DYN)
        known = {"new": row, "old": row, "op": kinds.STRING, "table": kinds.STRING}
        try:
            self._compiled = cel.NewEnv(variables=known).compile(text)
        except RuntimeError as error:
            reason = str(error).replace("INVALID_ARGUMENT: ", "").replace("ERROR: ", "")
            reason = " ".join(reason.split())  # it spans lines, with a mark below the place
            hint = "It may name new.ATTRIBUTE, old.ATTRIBUTE, op and table."
            raise ConfigError(f"{where}: CEL cannot read the expression: {reason}.", hint=hint) from None
        self._error = kinds.ERROR
        self.names = find_mentioned(text)
        self._variables = frozenset(match["name"] for match in _variable.finditer(text))
        self.old = "old" in self._variables
        """Whether it looks at the row before the change."""

    def value(self, old: Mapping[str, Any], new: Mapping[str, Any], op: str, table: str) -> Any:
        """Evaluate; raise Undecided if there is no value."""
        # Each variable is copied whenever it is handed over, which takes longer than most
        # expressions.
        variables = self._variables
        known: dict[str, Any] = {"new": new} if "new" in variables else {}
        if len(known) < len(variables):
            every = {"old": old, "op": op, "table": table}
            known.update((name, value) for name, value in every.items() if name in variables)
        result = self._compiled.eval(data=known)
        value = result.value()
        # An error comes as a value, which is its text.
        if isinstance(value, str) and result.type() == self._error:
            kind = value.partition(":")[0]
            raise Undecided(_REASONS.get(kind, "a value in it is NULL, or of another type"))
        return value


def find_mentioned(text: str) -> frozenset[str] | None:
    """Name the attributes in an expression; None where it may look at any."""
    names = set()
    for match in _mention.finditer(text):
        if match["text"] is not None:
            continue
        name = match["name"] or match["double"] or match["single"]
        if name is None:  # `new` as a whole, or an index that is an expression
            return None
        names.add(name)
    return frozenset(names)


def cel_value(cell: Cell, category: Category) -> Any:
    """Convert a cell for CEL: whole numbers, fractions, truth, text, bytes, lists; times as text in ISO
    8601.
    """
    if type(cell) is str and category is Category.STRING:
        return cell
    if isinstance(cell, tuple):
        return [cel_value(value, category) for value in cell]
    plain: Value = plain_of(cell, category)
    if plain is None or isinstance(plain, str | bool | int | bytes | float):
        return plain
    return float(plain)  # type: ignore[arg-type]  # a Decimal is what is left


def function_named(name: str, where: str) -> Callable[..., Any]:
    """Load a function for policies; `where` begins the sentence of the error, if there is none or it
    cannot be loaded.
    """
    known = {offer.name: offer for offer in offers("policies")}
    if name not in known:
        hint = "Install the package that has it where eventlog runs."
        if known:
            hint = did_you_mean(name, known)
        missing = f"no package offers {name} among the entry points eventlog.policies"
        raise ConfigError(f"{where}: {missing}.", hint=hint)
    try:
        function: Callable[..., Any] = load_offer(known[name])
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", hint=error.hint) from error
    return function
