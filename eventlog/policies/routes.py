"""Where changes go: what a step that routes says of each, by a template over its table, class and
values.
"""

from __future__ import annotations

from msgspec.structs import replace

from eventlog.core.errors import ConfigError
from eventlog.core.model import ABSENT, Absent, Cell, Change, Op, Refusal
from eventlog.core.outputs import PlaceKind
from eventlog.core.places import NoPlace, place
from eventlog.core.sql_types import Category
from eventlog.policies import steps
from eventlog.policies.columns import Action
from eventlog.policies.known import rows
from eventlog.policies.shape import Shape
from eventlog.policies.values import text_of

KNOWN_PLACES = 1000
"""Places that are remembered of each table."""


def routing(step: steps.Route, shape: Shape, number: int) -> Action:
    """Route each change by its new values, a delete by its former ones."""
    template = step.template()
    kind: PlaceKind = "folder"
    taken: tuple[str, ...] = ()
    if isinstance(step, steps.PlacedRoute):
        kind, taken = step.kind, step.taken
    names = frozenset(name.removeprefix("new.") for name in template.fields if name.startswith("new."))
    shape.choose(names, number)
    shape.need(names, asking=None)
    # Whoever sees a place sees the values in it, whatever a step hides of the documents.
    shape.expose(names)
    keys = shape.key_names(names)
    categories = {name: shape.category(name) for name in names}
    table = shape.table
    fixed = {"schema": table.schema or "", "table": table.name}
    fixed["class"] = table.class_name or table.name
    known: dict[tuple[str, ...], str | NoPlace] = {}

    def values(change: Change) -> dict[str, str]:
        """Return the values of the template; raise NoPlace for an unknown one."""
        if change.op is Op.TRUNCATE:
            raise NoPlace("it is about the whole table")
        _, new = rows(change, keys, names)
        parts = {name: _part(name, new.get(name, ABSENT), categories[name]) for name in names}
        return fixed | {f"new.{name}": part for name, part in parts.items()}

    def place_of(change: Change) -> str:
        filled = values(change) if names else fixed
        key = tuple(filled.values())
        if key not in known:
            if len(known) >= KNOWN_PLACES:
                known.clear()
            try:
                known[key] = place(template, filled, kind, taken)
            except NoPlace as error:
                known[key] = error
        where = known[key]
        if isinstance(where, NoPlace):
            raise NoPlace(str(where))
        return where

    # Without values it is the same for all changes, so a wrong one is known before there is any.
    if not names and not step.otherwise:
        try:
            place(template, fixed, kind, taken)
        except NoPlace as error:
            problem = f"Step {number} (do = 'route'): `to` gives no {kind} for {table.whole}, because {error}."
            raise ConfigError(problem, hint="Write another template, or say `otherwise`.") from None

    def route(change: Change) -> Change | Refusal:
        try:
            return replace(change, route=place_of(change))
        except NoPlace as error:
            if step.otherwise:
                return replace(change, route=step.otherwise)
            note = f"step {number} of the policy: `to` gives no {kind}, because {error}."
            return Refusal(positions=change.positions, note=note)

    return route


def _part(name: str, value: Cell | Absent, category: Category) -> str:
    """Format a value for a place; raise NoPlace if impossible."""
    if value is None:
        raise NoPlace(f"{name} is NULL")
    if value is ABSENT:
        raise NoPlace(f"{name} is not known")
    if isinstance(value, tuple):
        raise NoPlace(f"{name} is several values")
    return text_of(value, category)
