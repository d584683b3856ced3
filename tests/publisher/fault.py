"""One fault that is put into the publisher: in which function or query, and with which effect.

An effect goes by names that the function uses, never by its text: whoever writes the same in another way keeps the faults.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)
"""Statements that a fault can leave out."""


class Place(NamedTuple):
    """A part of a function: the field of a node, and where in that field; None for a field that is no list."""

    holder: ast.AST
    field: str
    number: int | None

    @property
    def part(self) -> Any:
        found = getattr(self.holder, self.field)
        return found if self.number is None else found[self.number]

    def put(self, *parts: ast.AST) -> None:
        """Put these in its place."""
        if self.number is None:
            setattr(self.holder, self.field, *parts)
        else:
            getattr(self.holder, self.field)[self.number : self.number + 1] = parts


class Effect(NamedTuple):
    """What a fault does: in all the places that it could be, which one it is goes by the names used there.

    `in_sql` changes the text of a query; those of Python have none.
    """

    names: tuple[str, ...]
    may_be: Callable[[Place], bool]
    change: Callable[[Place], None]
    in_sql: Callable[[str], tuple[str, int]] | None = None

    def apply(self, function: ast.AST) -> int:
        """Change a function in place; return at how many places it could have been."""
        found = [place for place in list_places(function) if self.may_be(place) and mentions(place.part, *self.names)]
        inner = [one for one in found if not any(other.part in {*ast.walk(one.part)} - {one.part} for other in found)]
        if len(inner) == 1:
            self.change(inner[0])
        return len(inner)


class JournalFault(NamedTuple):
    """What is wrong, where ("file:function" or "file.sql:query", of the publisher where there is no folder), and how."""

    what: str
    where: str
    effect: Effect

    @property
    def path(self) -> Path:
        name = self.where.partition(":")[0]
        path = Path("eventlog") / (name if "/" in name else f"publisher/{name}")
        return path if path.suffix else path.with_suffix(".py")

    def change(self) -> str:
        """Return its file with the fault in it; ValueError if there is not one place for it."""
        name, text = self.where.partition(":")[2], (ROOT / self.path).read_text(encoding="utf-8")
        if self.effect.in_sql is not None:
            before, query, after = split_query(text, name)
            query, places = self.effect.in_sql(query)
            changed = before + query + after
        else:
            module = ast.parse(text)
            places = self.effect.apply(find_function(module, name))
            changed = ast.unparse(ast.fix_missing_locations(module))
        if places != 1:
            raise ValueError(f"{self.what}: {places} places in {self.where}")
        return changed


def skips(*names: str) -> Effect:
    """Leave out the statement that uses these names."""
    return does("pass", *names)


def does(statements: str, *names: str) -> Effect:
    """Do this in place of the statement that uses these names, whose value is `_`."""

    def change(place: Place) -> None:
        value = getattr(place.part, "value", ast.Constant(None))
        place.put(*[_Former(value).visit(one) for one in ast.parse(statements).body])

    return Effect(names, lambda place: isinstance(place.part, SIMPLE), change)


def asks(condition: str, *names: str) -> Effect:
    """Ask this in place of the condition that uses these names, which is `_`."""

    def is_one(place: Place) -> bool:
        return place.field == "test" or (place.field == "ifs" and isinstance(place.holder, ast.comprehension))

    return Effect(names, is_one, lambda place: place.put(_expression(condition, place)))


def never(*names: str) -> Effect:
    """Take the condition that uses these names for false."""
    return asks("False", *names)


def always(*names: str) -> Effect:
    """Take the condition that uses these names for true."""
    return asks("True", *names)


def loops_over_nothing(*names: str) -> Effect:
    """Have the loop over what these names say do nothing."""
    return Effect(names, lambda place: place.field == "iter", lambda place: place.put(_expression("()", place)))


def without(*names: str) -> Effect:
    """Leave out the operand of and or or, the element or the keyword that uses these names."""
    lists = {ast.BoolOp: "values", ast.List: "elts", ast.Tuple: "elts", ast.Call: "keywords"}
    return Effect(names, lambda place: place.field == lists.get(type(place.holder)), lambda place: place.put())


def gives(name: str, value: str, *beside: str) -> Effect:
    """Give another value to a variable, a keyword or what is returned, where names `beside` stand; the former is `_`."""

    def is_one(place: Place) -> bool:
        holder = place.holder
        if place.field != "value" or not mentions(holder, *beside):
            return False
        if isinstance(holder, ast.Assign):
            return any(mentions(target, name) for target in holder.targets)
        if isinstance(holder, ast.AnnAssign):
            return mentions(holder.target, name)
        return isinstance(holder, ast.Return) if name == "return" else getattr(holder, "arg", None) == name

    return Effect((), is_one, lambda place: place.put(_expression(value, place)))


def calls(name: str, former: str) -> Effect:
    """Call this function in place of the `former` one."""
    return Effect((former,), lambda place: place.field == "func", lambda place: place.put(_expression(name, place)))


def call_gives(name: str, value: str) -> Effect:
    """Have a value in place of a call of this function."""

    def is_one(place: Place) -> bool:
        return isinstance(call := place.part, ast.Call) and name in (
            getattr(call.func, "attr", ""),
            getattr(call.func, "id", ""),
        )

    return Effect((name,), is_one, lambda place: place.put(_expression(value, place)))


def does_nothing() -> Effect:
    """Return at once."""
    return Effect(
        (),
        lambda place: place.field == "body" and place.number == 0,
        lambda place: place.put(ast.Return(None), place.part),
    )


def query_without(condition: str) -> Effect:
    """Leave out the condition of a query that begins so, up to the next one or the end."""
    pattern = rf"\s+AND {re.escape(condition)}.*?(?=\s+(?:AND [/a-z]|ORDER BY|RETURNING)|;)"
    return _of_query(lambda text: re.subn(pattern, "", text, flags=re.DOTALL))


def query_gives(column: str, value: str) -> Effect:
    """Have a query set a column to another value."""
    return _of_query(lambda text: re.subn(rf"\b{column} = \S+", f"{column} = {value}", text))


def _of_query(change: Callable[[str], tuple[str, int]]) -> Effect:
    return Effect((), lambda _: False, lambda _: None, change)


def find_function(module: ast.Module, name: str) -> ast.AST:
    """Find a function by its name, behind that of its class; the module without a name."""
    found: Any = module
    for part in filter(None, name.split(".")):
        found = next(one for one in found.body if getattr(one, "name", "") == part)
    return found  # type: ignore[no-any-return]  # a node


def list_places(function: ast.AST) -> Iterator[Place]:
    """Yield every part of a function."""
    for holder in ast.walk(function):
        for field, value in ast.iter_fields(holder):
            if isinstance(value, list):
                yield from (
                    Place(holder, field, number) for number, one in enumerate(value) if isinstance(one, ast.AST)
                )
            elif isinstance(value, ast.AST):
                yield Place(holder, field, None)


def mentions(part: ast.AST, *names: str) -> bool:
    """Return True if a part uses all these names: of variables, attributes, keywords, queries."""
    used = {getattr(one, field, None) for one in ast.walk(part) for field in ("id", "attr", "arg", "value")}
    return {*names} <= used


def split_query(text: str, name: str) -> tuple[str, str, str]:
    """Split a file of queries around one of them."""
    begin = text.index(f"-- {name}: ")
    end = text.index(";\n", begin) + 1
    return text[:begin], text[begin:end], text[end:]


def _expression(text: str, place: Place) -> ast.expr:
    return _Former(place.part).visit(ast.parse(text, mode="eval").body)  # type: ignore[no-any-return]  # a node


class _Former(ast.NodeTransformer):
    """Puts what a fault replaces where it says `_`."""

    def __init__(self, former: ast.AST) -> None:
        self._former = former

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._former if node.id == "_" and isinstance(node.ctx, ast.Load) else node
