"""Actions: what a step does to one change. Each is made once for a table, and changes the table's shape as it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from eventlog.core.errors import ConfigError, DataError
from eventlog.core.model import ABSENT, CellOrAbsent, Change, Edit, Op, Refusal, Row, RowId, Value
from eventlog.core.sql_types import Category, category
from eventlog.core.suggest import did_you_mean
from eventlog.core.tablekey import format_parts, parse
from eventlog.policies import steps
from eventlog.policies.columns import Action, Columns, Looking, Places, Setting, filter_out
from eventlog.policies.expressions import Expression, Undecided, cel_value, function_named
from eventlog.policies.forms import dating, numbering
from eventlog.policies.known import rows
from eventlog.policies.routes import routing
from eventlog.policies.shape import Shape
from eventlog.policies.values import ValueChange, encrypting, hashing, text_of

KNOWN_VALUES = 1000
"""Values of an expression that are remembered."""


def action_of(step: steps.Step | steps.Unmapped, shape: Shape, number: int) -> Action | None:
    """Make the action of a step on the changes of a table, and change the shape; None where it does
    nothing.
    """
    # `only` is about the tables that it does not mean, all others are about those that they do.
    meant = shape.is_meant(step.classes)
    if isinstance(step, steps.OnlyTables):
        return None if meant else _leave_out(shape, number)
    if not meant:
        return None
    if isinstance(step, steps.WithoutTables):
        return _leave_out(shape, number)
    if isinstance(step, steps.Unmapped):
        return _guard(step, shape, number)
    made = _MADE[type(step)]
    return made(step, shape, number)


def _leave_out(shape: Shape, number: int) -> Action:
    shape.left_out = True
    # Nothing of it may be read behind this step, also not by a template or a note.
    shape.hide(tuple(shape.plain))
    return lambda change: filter_out(change, number, "the table is left out")


def _keep(step: steps.Keep, shape: Shape, number: int) -> Action | None:
    kept = {*shape.choose(step.attributes, number)}
    # A key column is kept whatever the step names: objects are told apart by it.
    gone = frozenset(name for name in shape.table.loggable if name not in kept and shape.key_of(name) is None)
    shape.drop(gone)
    return _dropping(gone, number) if gone else None


def _drop(step: steps.Drop, shape: Shape, number: int) -> Action | None:
    gone = frozenset(shape.choose(step.attributes, number))
    shape.refuse_key(gone, number, "drop")
    shape.drop(gone)
    return _dropping(gone, number) if gone else None


def _guard(step: steps.Unmapped, shape: Shape, number: int) -> Action | None:
    """Drop attributes nobody names; a key stays, for it tells objects apart."""
    mapped = set[str]()
    if step.mapped is not None:
        names = {name.casefold() for name in (shape.source.whole, shape.source.name)}
        tables = [columns for table, columns in step.mapped if table.casefold() in names]
        if not tables:
            return None  # nothing of it is sent
        mapped = {column.casefold() for columns in tables for column in columns}
    unnamed = [
        name
        for name in shape.table.loggable
        if name not in shape.spoken and name.casefold() not in mapped and shape.key_of(name) is None
    ]
    captured = [name for name in unnamed if name in shape.table.attributes]
    if captured and step.mode == "stop":
        what = f"{shape.source.whole}.{captured[0]} is named by no mapping and no policy"
        hint = "Name it in a step (keep, drop, …) or in the mapping; unmapped = 'drop' leaves such columns out."
        raise ConfigError(f"{what}, and unmapped is 'stop'.", hint=hint)
    shape.drop(unnamed)
    return _dropping(unnamed, number) if unnamed else None


def _dropping(names: Iterable[str], number: int) -> Action:
    return Columns(dict.fromkeys(names), number)


def _rename(step: steps.Rename, shape: Shape, number: int) -> Action | None:
    shape.choose(step.attributes, number)
    known = shape.table.loggable
    names = {old: new for old, new in step.attributes.items() if old in known}
    # Others may change places in one step; only one that keeps its name is in the way.
    taken = {name for name in known if name not in names}.intersection(names.values())
    if taken:
        message = f"Step {number} (do = 'rename'): {shape.table.whole} has an attribute {min(taken)} already."
        raise ConfigError(message, hint="Choose another name, or drop that one before.")
    shape.rename(names, step.class_name)
    if not names:
        return None
    return Columns({name: (other, None) for name, other in names.items()}, number)


def _redact(step: steps.Redact, shape: Shape, number: int) -> Action | None:
    names = shape.choose(step.attributes, number)
    shape.refuse_key(names, number, "redact")
    shape.retype(names, "varchar")
    shape.hide(names)
    return _on_values(dict.fromkeys(names, lambda _value: step.value), number)


def _hash(step: steps.Hash, shape: Shape, number: int) -> Action | None:
    names = shape.choose(step.attributes, number)
    made = {name: hashing(step.secret, shape.category(name)) for name in names}
    # The key of an object is written with the database's own names of columns.
    keys = {native: made[name] for native, name in shape.key_names(names).items()}
    shape.retype(names, "varchar(64)", refers=True)
    shape.hide(names)
    hide = _on_values(made, number)
    if not keys or hide is None:
        return hide

    def hide_key(change: Change) -> Change | Refusal:
        with_values = hide(change)
        assert isinstance(with_values, Change)  # it changes values only, so nothing is left out
        try:
            parts = parse(change.row.key).parts
        except DataError:  # nobody has said what the key is; then nothing of it may be published
            note = f"step {number} of the policy: the key cannot be read."
            return Refusal(positions=change.positions, note=note)
        hashed = [(name, str(keys[name](text)) if name in keys else text) for name, text in parts]
        return replace(with_values, row=replace(change.row, key=format_parts(hashed)))

    return hide_key


def _encrypt(step: steps.Encrypt, shape: Shape, number: int) -> Action | None:
    from eventlog.core.packages import require

    require("A policy that encrypts", "cryptography")
    names = shape.choose(step.attributes, number)
    shape.refuse_key(names, number, "encrypt")
    made = {name: encrypting(step.secret, shape.category(name), name) for name in names}
    shape.retype(names, "text")
    shape.hide(names)
    return _on_values(made, number)


def _text(step: steps.Text, shape: Shape, number: int) -> Action | None:
    names = shape.choose(step.attributes, number)
    shape.refuse_key(names, number, "text")
    write: Callable[[str], str] = _WRITTEN[step.to]
    # Upper case of a number would be no number; what is no text stays.
    texts = [name for name in names if shape.category(name) is Category.STRING]

    def write_text(value: Value) -> Value:
        return write(value) if isinstance(value, str) else value

    return _on_values(dict.fromkeys(texts, write_text), number)


_WRITTEN: Mapping[str, Callable[[str], str]] = {"upper": str.upper, "lower": str.lower, "trim": str.strip}


def _map(step: steps.Map, shape: Shape, number: int) -> Action | None:
    names = shape.choose(step.attributes, number)
    shape.refuse_key(names, number, "map")

    def mapping(category: Category) -> ValueChange:
        def map_value(value: Value) -> Value:
            text = text_of(value, category)
            return step.values.get(text, text if step.otherwise is None else step.otherwise)

        return map_value

    made = {name: mapping(shape.category(name)) for name in names}
    shape.retype(names, "varchar")
    return _on_values(made, number)


def _on_values(made: Mapping[str, ValueChange], number: int) -> Columns | None:
    """Change single values, before and after alike, and those read beside them."""
    if made:
        return Columns({name: (name, change) for name, change in made.items()}, number)
    return None


def _constant(step: steps.Constant, shape: Shape, number: int) -> Action:
    shape.refuse_key([step.attribute], number, "constant")
    shape.add(step.attribute, "varchar")
    return _setting(step.attribute, frozenset(), lambda _row, _change: step.value, {}, number)


def _join(step: steps.Join, shape: Shape, number: int) -> Action:
    known = shape.choose(step.of, number)
    names = [name for name in step.of if name in known]  # in the step's order, not the table's
    shape.refuse_key([step.attribute], number, "join")
    categories = {name: shape.category(name) for name in names}
    shape.need(names, asking=frozenset(names))
    keys = shape.key_names(names)
    shape.add(step.attribute, "varchar")

    def join(row: Row, _change: Change) -> CellOrAbsent:
        texts: list[str] = []
        for name in names:
            cell = row.get(name)
            values = cell if isinstance(cell, tuple) else (cell,)
            texts += [text_of(value, categories[name]) for value in values if value is not None]
        return step.separator.join(texts) if texts else None

    return _setting(step.attribute, frozenset(names), join, keys, number)


def _compute(step: steps.Compute, shape: Shape, number: int) -> Action:
    shape.refuse_key([step.attribute], number, "compute")
    looks = _Looks(step.expression, shape, number, "compute")
    keys = shape.key_names(looks.names)
    # Only once the expression was read: it may look at the attribute that it gives another value.
    shape.add(step.attribute, step.type)
    is_text = category(step.type) is Category.STRING

    def compute(row: Row, change: Change) -> CellOrAbsent:
        try:
            value = looks.at(row, row, change)
        except Undecided:
            if step.on_error == "null":
                return None
            raise
        if value is None:
            return None
        if isinstance(value, bool | int | float | str):
            if is_text:
                return text_of(value, Category.STRING)
            return value
        if isinstance(value, bytes | bytearray):
            return bytes(value)
        if step.on_error == "null":
            return None
        raise Undecided("it comes to something that is no single value")

    return _setting(step.attribute, looks.names, compute, keys, number)


def _call(step: steps.Call, shape: Shape, number: int) -> Action:
    where = f"Step {number} (do = 'call')"
    function = function_named(step.function, where)
    names = shape.choose(step.of, number)
    shape.refuse_key([step.attribute], number, "call")
    categories = {name: shape.category(name) for name in names}
    keys = shape.key_names(names)
    shape.need(names, asking=frozenset(names))
    shape.add(step.attribute, step.type)
    is_text = category(step.type) is Category.STRING

    def call(row: Row, _change: Change) -> CellOrAbsent:
        given = {name: cel_value(row[name], categories[name]) for name in names if name in row}
        try:
            value = function(given)
        except Exception as error:  # noqa: BLE001  # it is somebody else's; what it says may hold values
            why = f"{step.function} ended with {type(error).__name__}"
        else:
            if value is None or isinstance(value, bool | int | float | str | bytes):
                if is_text and value is not None:
                    return text_of(value, Category.STRING)
                return value
            why = f"{step.function} gave something that is no single value"
        if step.on_error == "null":
            return None
        raise Undecided(why)

    return _setting(step.attribute, frozenset(names), call, keys, number)


def _lookup(step: steps.Lookup, shape: Shape, number: int) -> Action | None:
    where = f"Step {number} (do = 'lookup')"
    other = shape.other(step.table, where)
    if step.take not in other.attributes:
        hint = did_you_mean(step.take, other.attributes)
        raise ConfigError(f"{where}: {step.take} is no attribute of {step.table}.", hint=hint)
    shape.refuse_key([step.attribute], number, "lookup")
    names = shape.choose([step.of], number)[:1]
    if not names:  # this table has none; `missed` says so where no table has it
        return None
    [of], inputs = names, frozenset(names)
    category, keys = shape.category(of), shape.key_names(names)
    shape.need(names, asking=inputs)
    shape.add(step.attribute, other.attributes[step.take].column.type)

    def place(row: Row, change: Change) -> tuple[str, RowId] | None:
        """Find the row to look into, and its name here; None where there is none."""
        cell = row.get(of, ABSENT)
        # NULL is not logged of a row that comes, so what is not known of one is NULL.
        if cell is None or (cell is ABSENT and change.op is Op.ADD):
            return None
        if cell is ABSENT:
            raise Undecided(f"{of} is not known")
        if isinstance(cell, tuple):
            raise Undecided(f"{of} has several values")
        key = format_parts([(other.bare_key[0], text_of(cell, category))])
        return f"{other.whole}.{step.take}[{key}]", RowId(other.schema, other.name, key)

    def look_up(row: Row, change: Change) -> CellOrAbsent:
        named = place(row, change)
        if named is None:
            return None
        value = (change.looked or {}).get(named[0], ABSENT)
        if value is ABSENT:
            raise Undecided(f"{step.table} cannot be read")
        return value

    def list_places(change: Change) -> Places:
        needed: dict[str, tuple[RowId, str]] = {}
        for row in rows(change, keys, inputs):
            # That is reported where the attribute is set; nothing is to be read for it.
            with suppress(Undecided):
                named = place(row, change)
                if named is not None and named[0] not in (change.looked or {}):
                    needed[named[0]] = named[1], step.take
        return needed

    return _setting(step.attribute, inputs, look_up, keys, number, list_places)


def _setting(
    attribute: str,
    inputs: frozenset[str],
    value: Callable[[Row, Change], CellOrAbsent],
    keys: Mapping[str, str],
    number: int,
    asked: Callable[[Change], Places] | None = None,
) -> Action:
    """Adds an attribute to changes of an object: of all of it, or of one of its inputs."""

    def applies(change: Change) -> bool:
        if change.op is Op.TRUNCATE or (change.op is Op.DELETE and not change.edits):
            return False
        if change.op is not Op.MODIFY or change.whole or change.created:
            return True
        return any(edit.reset or edit.column in inputs for edit in change.edits)

    def with_attribute(change: Change) -> Change | Refusal:
        if not applies(change):
            return change
        old, new = rows(change, keys, inputs)
        try:
            edit = _set(attribute, change, (old, new), value, inputs)
        except Undecided as error:
            note = f"step {number} of the policy: the value of {attribute} is not known, because {error}."
            return Refusal(positions=change.positions, note=note)
        others = [other for other in change.edits if other.column != attribute]
        return replace(change, edits=(*others, edit))

    if asked is None:
        return Setting(attribute, inputs, with_attribute)
    return Looking(attribute, inputs, with_attribute, asked)


def _set(
    attribute: str,
    change: Change,
    row: tuple[Row, Row],
    value: Callable[[Row, Change], CellOrAbsent],
    inputs: frozenset[str],
) -> Edit:
    old, new = row
    if change.op is Op.DELETE:
        return Edit(column=attribute, old=value(old, change))
    now = value(new, change)
    if change.op is Op.ADD:
        return Edit(column=attribute, new=now)
    # Where an input says only what it is now, the same holds for what is made of it.
    if any(edit.reset for edit in change.edits if not inputs or edit.column in inputs):
        return Edit(column=attribute, new=now, reset=True)
    try:
        return Edit(column=attribute, old=value(old, change), new=now)
    except Undecided:
        return Edit(column=attribute, new=now, reset=True)  # the new value is known, the former is not


class _Looks:
    """An expression, and what it looks at of a table."""

    def __init__(self, text: str, shape: Shape, number: int, done: str) -> None:
        self._known: dict[tuple[Any, ...], tuple[Any] | Undecided] = {}
        """What it came to lately: conditions are mostly about values of which there are few."""
        self._expression = Expression(text, f"Step {number} (do = {done!r})")
        named = self._expression.names
        known = shape.table.loggable
        # It may look at any attribute, so all of them must be known.
        if named is None:
            self.names = frozenset(known)
        else:
            self.names = named
            shape.choose(named, number)
        is_one = len(self.names) == 1 and not self._expression.old
        self._only = min(self.names) if is_one else None
        """The one attribute that it looks at, where it is one."""
        self._categories = {name: shape.category(name) for name in self.names}
        # A condition is asked of every change, a value only where one of its inputs changes.
        shape.need(self.names, asking=None if done == "where" else self.names)

    def at(self, old: Row, new: Row, change: Change) -> Any:
        """Evaluate the expression; raise Undecided if it has no value."""
        key = self._key(old, new, change)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= KNOWN_VALUES:
                self._known.clear()
            try:
                known = (self._value(old, new, change),)
            except Undecided as error:
                known = error
            self._known[key] = known
        if isinstance(known, Undecided):
            # Another one each time: the kept one would hold the frames of all who raised it.
            raise Undecided(str(known))
        return known[0]

    def _key(self, old: Row, new: Row, change: Change) -> tuple[Any, ...]:
        """Return everything visible to the expression; with types, as 1 and true are equal in Python."""
        if self._only is not None:
            cell = new.get(self._only, ABSENT)
            return change.op, cell, type(cell)
        seen = (old, new) if self._expression.old else (new,)
        cells = [row.get(name, ABSENT) for row in seen for name in self.names]
        return change.op, *cells, *map(type, cells)

    def _value(self, old: Row, new: Row, change: Change) -> Any:
        before = self._give_values(old) if self._expression.old else {}
        return self._expression.value(before, self._give_values(new), change.op.value, change.row.table)

    def _give_values(self, row: Row) -> dict[str, Any]:
        categories = self._categories
        return {name: cel_value(row[name], category) for name, category in categories.items() if name in row}


def _where(step: steps.Where, shape: Shape, number: int) -> Action:
    looks = _Looks(step.condition, shape, number, "where")
    keys = shape.key_names(looks.names)
    names = tuple(shape.table.attributes)
    if step.when_leaving == "delete":
        # Whether the object was published before is known only with its former values.
        shape.need(names, asking=looks.names)

    def hold_for(old: Row, new: Row, change: Change) -> bool:
        holds = looks.at(old, new, change)
        if not isinstance(holds, bool):
            raise Undecided("it is neither true nor false")
        return holds

    def decide(change: Change) -> Change | Refusal:
        # Who is not there any more has no values; an output that never had it loses nothing.
        if change.op is Op.TRUNCATE or (change.op is Op.DELETE and not change.edits and not change.beside):
            return change
        old, new = rows(change, keys, looks.names)
        try:
            if hold_for(old, new, change):
                if step.when_leaving == "nothing":
                    return change
                return enter(old, change)
        except Undecided as error:
            # What was read beside it is empty: the object was asked for and is not there.
            if change.beside is not None and not change.beside:
                return filter_out(change, number, "its object is gone by now, so the condition cannot be decided")
            if step.on_error == "tell":
                return change
            why = f"the condition cannot be decided, because {error}"
            if step.on_error == "leave-out":
                return filter_out(change, number, why)
            return Refusal(positions=change.positions, note=f"step {number} of the policy: {why}.")
        if step.when_leaving == "delete" and change.op is Op.MODIFY:
            try:
                was_held = hold_for(old, old, change)
            except Undecided:
                was_held = True  # nobody knows
            if was_held:
                # To who got the object it ends here, as if it were deleted.
                return replace(change, op=Op.DELETE, edits=(), whole=False, created=False, beside=None)
        return filter_out(change, number, "the condition is not true")

    def enter(old: Row, change: Change) -> Change:
        """Return the change, or all of the object where it may be the first for the output."""
        changed = {edit.column for edit in change.edits}
        if change.op is not Op.MODIFY or changed.isdisjoint(looks.names):
            return change
        try:
            if hold_for(old, old, change):
                return change
            op, reset = Op.ADD, False
        except Undecided:
            op, reset = Op.MODIFY, True  # it may be there already, with other values
        _, now = rows(change, {}, names)
        edits = [Edit(column=name, new=now[name], reset=reset) for name in names if name in now]
        return replace(change, op=op, edits=tuple(edits), whole=False)

    return decide


_MADE: Mapping[type, Callable[[Any, Shape, int], Action | None]] = {
    steps.Keep: _keep,
    steps.Drop: _drop,
    steps.Rename: _rename,
    steps.Redact: _redact,
    steps.Hash: _hash,
    steps.Encrypt: _encrypt,
    steps.Text: _text,
    steps.Map: _map,
    steps.Constant: _constant,
    steps.Join: _join,
    steps.Compute: _compute,
    steps.Where: _where,
    steps.Lookup: _lookup,
    steps.Call: _call,
    steps.Date: dating,
    steps.Number: numbering,
    steps.Route: routing,
    steps.PlacedRoute: routing,
}
