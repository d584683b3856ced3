"""Steps bound to tables: the actions that each table's changes go through, what it looks like
behind them, and the format there.

Law: what a step hides, no later step, format or note can see. So a step that hides a value hides it
in what was read beside the change as well, and what went wrong is said without values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from eventlog.core.errors import ConfigError
from eventlog.core.model import Change, Document, Op, Refusal, RowId
from eventlog.core.schema import Catalog, Table
from eventlog.core.seams import Format, FormerNames, Writer, on_value_of
from eventlog.core.suggest import did_you_mean
from eventlog.policies.actions import action_of
from eventlog.policies.columns import Action, Looking, Places, together
from eventlog.policies.shape import Shape
from eventlog.policies.steps import Steps

KNOWN_CHANGES = 1000
"""Combinations of attributes that a change may have, of which it is remembered what they need."""

Place = tuple[str | None, str]


class Traced(NamedTuple):
    """What a step made of a change; `after` is a Refusal where the change ends here.

    `plain` and `plain_after` are the source attributes whose values can be read before and after
    it, by their names there.
    """

    step: str
    before: Change
    after: Change | Refusal
    plain: Mapping[str, str] = {}
    plain_after: Mapping[str, str] = {}


class Bound(NamedTuple):
    """A step bound to a table; what can be read before and after it."""

    step: str
    action: Action
    plain: Mapping[str, str] = {}
    plain_after: Mapping[str, str] = {}


class Plan(NamedTuple):
    """What the changes of a table go through; `needs` are the attributes that must be known of the
    object, and why.
    """

    actions: Sequence[Bound]
    fast: Sequence[Action]
    """The same actions, those of single attributes together."""
    needs: Sequence[tuple[frozenset[str] | None, frozenset[str]]] = ()
    looks: bool = False
    """Whether an action looks in rows of other tables."""
    known: dict[tuple[str, ...], frozenset[str]] = {}  # noqa: RUF012  # that of a plan without needs, which is never filled
    """What changes of the same attributes needed lately."""


class Policy:
    """Steps bound to the tables of a catalog. `catalog` is what the tables look like behind them."""

    def __init__(self, steps: Steps, catalog: Catalog | None) -> None:
        self.catalog = catalog
        self.shapes: list[Shape] = []
        self._steps = steps
        self._plans: dict[Place, Plan] = {}
        if catalog is None or not steps:
            return
        tables: list[Table] = []
        for table in catalog:
            shape = Shape(table, catalog)
            self._plans[table.schema, table.name] = self._bind(shape)
            self.shapes.append(shape)
            if not shape.left_out:
                tables.append(shape.table)
        self.catalog = Catalog(tables, case_sensitive=catalog.case_sensitive)

    def __bool__(self) -> bool:
        return bool(self._steps)

    def check(self, *, whole: bool = True) -> None:
        """Raise ConfigError if a step names an unknown table or attribute.

        If the catalog is not `whole`, a name may be of a table elsewhere, and passes.
        """
        for number, step in enumerate(self._steps, 1):
            where = f"Step {number} (do = {step.__struct_config__.tag!r})"
            for pattern in step.classes:
                if whole and not any(shape.is_meant((pattern,)) for shape in self.shapes):
                    known = {name for shape in self.shapes for name in shape.names}
                    raise ConfigError(f"{where}: {pattern} is no table.", hint=did_you_mean(pattern, known))
            if not whole and not step.classes:
                continue
            meant = [shape for shape in self.shapes if shape.is_meant(step.classes)]
            # What one table has not another one may have: only what none has is an error.
            missed = [shape.missed.get(number, frozenset()) for shape in meant]
            for name in sorted(frozenset.intersection(*missed) if missed else ()):
                had = {name for shape in self.shapes for name in shape.had.get(number, ())}
                raise ConfigError(f"{where}: {name} is no attribute.", hint=did_you_mean(name, had))

    @property
    def hidden(self) -> Mapping[Place, frozenset[str]]:
        """Map tables to their attributes unreadable behind the steps."""
        return {
            (shape.source.schema, shape.source.name): frozenset(shape.hidden - shape.exposed)
            for shape in self.shapes
            if shape.hidden
        }

    def apply(self, change: Change) -> Change | Refusal:
        """Apply the steps: return the change for the output, or a refusal."""
        row = change.row
        # Of a table that is not described nobody knows what of it is to be hidden, so nothing is
        # published.
        plan = self._plans.get((row.schema, row.table), _UNKNOWN) if self._steps else _NOTHING
        for action in plan.fast:
            after = action(change)
            if isinstance(after, Refusal):
                return after
            change = after
        return change

    def trace(self, change: Change) -> Iterator[Traced]:
        """Yield each step with an effect on the change, with before and after."""
        for bound in self._plan(change).actions:
            after = bound.action(change)
            if after is not change:
                yield Traced(bound.step, change, after, bound.plain, bound.plain_after)
            if isinstance(after, Refusal):
                return
            change = after

    def needs(self, change: Change) -> frozenset[str]:
        """Name the attributes to read for this change, because steps look at them and it does not bring them."""
        plan = self._plan(change)
        # A whole change brings all that there is, and a row that went cannot be read any more.
        if not plan.needs or change.whole or change.op in (Op.DELETE, Op.TRUNCATE):
            return frozenset()
        columns = tuple([edit.column for edit in change.edits])
        needed = plan.known.get(columns)
        if needed is None:
            if len(plan.known) >= KNOWN_CHANGES:
                plan.known.clear()
            asked = [
                attributes for asking, attributes in plan.needs if asking is None or not asking.isdisjoint(columns)
            ]
            needed = plan.known[columns] = frozenset[str]().union(*asked).difference(columns)
        return needed

    @property
    def is_looking(self) -> bool:
        """Return True if a step looks in rows of other tables."""
        return any(plan.looks for plan in self._plans.values())

    def looks(self, change: Change) -> Places:
        """List the values to read in rows of other tables before the change can be published; none once it
        brings all of them.

        Where one is found by the value of another, they are asked for one after the other.
        """
        plan = self._plan(change)
        places: dict[str, tuple[RowId, str]] = {}
        if not plan.looks:
            return places
        for bound in plan.actions:
            asked = bound.action.asked(change) if isinstance(bound.action, Looking) else {}
            places |= asked
            if asked:
                continue  # it cannot be done yet; what later steps ask without it is asked at once
            after = bound.action(change)
            if isinstance(after, Refusal):
                break
            change = after
        return places

    def _plan(self, change: Change) -> Plan:
        if not self._steps:
            return _NOTHING
        return self._plans.get((change.row.schema, change.row.table), _UNKNOWN)

    def _bind(self, shape: Shape) -> Plan:
        actions: list[Bound] = []
        for number, step in enumerate(self._steps, 1):
            if shape.left_out:
                break
            # Asked before the step is made, for making it changes the shape.
            plain = shape.plain
            action = action_of(step, shape, number)
            if action is not None:
                actions.append(Bound(f"{number}. {step.__struct_config__.tag}", action, plain, shape.plain))
        looks = any(isinstance(bound.action, Looking) for bound in actions)
        fast = together([bound.action for bound in actions])
        return Plan(actions, fast, shape.needs, looks, {})


def _refuse(change: Change) -> Refusal:
    return Refusal(
        positions=change.positions,
        note=f"{change.row.table} is not described, so nobody knows what of it the policy hides.",
    )


_NOTHING = Plan((), ())
_UNKNOWN = Plan([Bound("unknown table", _refuse)], [_refuse])


class PolicyFormat:
    """Writes changes in another format, after the steps."""

    def __init__(self, form: Format, steps: Steps) -> None:
        self._form = form
        self._steps = steps

    @property
    def suffix(self) -> str:
        return self._form.suffix

    @property
    def counts(self) -> bool:
        """Return the other format's answer."""
        return self._form.counts

    @property
    def former_names(self) -> FormerNames:
        """Accept present names only: a step knows no others, and must not let unknown ones pass."""
        return FormerNames.ONLY_NEW

    @property
    def on_value(self) -> str | None:
        """Return the other format's answer."""
        return on_value_of(self._form)

    def writer(self, catalog: Catalog | None) -> Writer:
        """Write each change after the policy, or explain why none is written."""
        policy = Policy(self._steps, catalog)
        policy.check(whole=False)
        write_all = self._form.writer(policy.catalog)

        def write(changes: Iterable[Change]) -> Iterator[Any]:
            refusals: list[Refusal] = []

            def accept() -> Iterator[Change]:
                for change in changes:
                    after = policy.apply(change)
                    if isinstance(after, Refusal):
                        refusals.append(after)
                    else:
                        yield after

            # The format asks for changes ahead, so refusals gather; they go out before what stands
            # behind them.
            for written in write_all(accept()):
                if refusals:
                    yield from refusals
                    refusals.clear()
                yield written
            yield from refusals

        return write

    def bind(self, written: Iterable[Any], after: str, whole: bool = False) -> Iterator[Document]:
        return self._form.bind(written, after, whole)

    def heartbeat(self) -> Document | None:
        return self._form.heartbeat()
