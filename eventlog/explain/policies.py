"""What policies make of changes, step by step, for people to read: of a row of the log, or of
samples in a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from eventlog.config.build import policies_of
from eventlog.config.settings import Config
from eventlog.core.errors import DataError
from eventlog.core.model import ABSENT, Cell, CellOrAbsent, Change, Edit, Op, Refusal, RowId
from eventlog.core.rules.screen import HIDDEN
from eventlog.core.schema import Catalog
from eventlog.explain.masking import Mask
from eventlog.policies.bound import Policy
from eventlog.policies.plugin import check_policy


class PolicyStep(Struct, frozen=True, kw_only=True):
    """What one step did: the change before it and after it, by attribute; `note` is why nothing
    is left.
    """

    step: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    note: str | None = None


class PolicyResult(Struct, frozen=True, kw_only=True):
    """What a policy makes of a change. `outcome` is told, filtered or refused."""

    output: str
    outcome: str
    told: Mapping[str, str]
    steps: tuple[PolicyStep, ...] = ()
    note: str | None = None


class SampleChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change as somebody writes it to try a policy.

    `beside` is what the row has in other attributes, `looked` what rows of other tables have that a
    step looks up, as `dept.name[id=7]`.
    """

    table: str
    key: str
    op: Literal["add", "modify", "delete"] = "modify"
    old: Mapping[str, Any] = {}
    new: Mapping[str, Any] = {}
    beside: Mapping[str, Any] | None = None
    looked: Mapping[str, Any] = {}

    def change(self, number: int, catalog: Catalog) -> Change:
        """Make the change; its table is looked up like a log row's."""
        naming = catalog.find(self.table)
        if naming is None:
            raise DataError(
                f"{self.table} is no table.",
                hint="The schema file, or the database, describes tables.",
            )
        edits = []
        # Not a set: attributes stay in the order in which somebody wrote them.
        for name in dict.fromkeys((*self.old, *self.new)):
            old, new = self.old.get(name, ABSENT), self.new.get(name, ABSENT)
            edits.append(Edit(column=name, old=_cell(old), new=_cell(new)))
        beside = None
        if self.beside is not None:
            beside = {name: _cell(value) for name, value in self.beside.items()}
        return Change(
            row=RowId(naming.table.schema, naming.table.name, self.key),
            op=Op(self.op),
            edits=tuple(edits),
            positions=((number,),),
            beside=beside,
            looked=self.looked,
        )


def results(
    config: Config, catalog: Catalog, changes: Iterable[Change], mask: Mask | None = None
) -> Iterator[PolicyResult]:
    """Apply each output's policy to each change, and hide masked values."""
    policies = [(name, check_policy(name, steps, catalog)) for name, steps in policies_of(config)]
    for change in changes:
        for name, policy in policies:
            yield result(name, policy, change, mask)


def result(output: str, policy: Policy, change: Change, mask: Mask | None = None) -> PolicyResult:
    """Apply a policy to a change."""
    steps: list[PolicyStep] = []
    last: Change | Refusal = change
    plain: Mapping[str, str] = {}
    hidden, keys = frozenset[str](), {}
    if mask is not None:
        hidden = mask.names(change)
        # By the key that the log has: a step may give the row another one, which hides nothing.
        keys[change.row.key] = mask.key(change.row.table, change.row.key) or ""

    def show_stage(stage: Change, names: Mapping[str, str]) -> dict[str, str]:
        return change_texts(stage, frozenset(name for name, source in names.items() if source in hidden), keys)

    for traced in policy.trace(change):
        last, plain = traced.after, traced.plain_after
        before = show_stage(traced.before, traced.plain)
        if isinstance(last, Refusal):
            steps.append(PolicyStep(step=traced.step, before=before, after={}, note=last.note))
            break
        after = show_stage(last, plain)
        # By the values themselves: two that are hidden look alike although the step has changed
        # them.
        left, came = change_texts(traced.before), change_texts(last)
        step = PolicyStep(
            step=traced.step,
            before={name: text for name, text in before.items() if came.get(name) != left[name]},
            after={name: text for name, text in after.items() if left.get(name) != came[name]},
        )
        steps.append(step)
    if isinstance(last, Refusal):
        outcome = "filtered" if last.filtered else "refused"
        return PolicyResult(output=output, outcome=outcome, told={}, steps=tuple(steps), note=last.note)
    return PolicyResult(output=output, outcome="told", told=show_stage(last, plain), steps=tuple(steps))


def change_texts(
    change: Change,
    hidden: frozenset[str] = frozenset(),
    keys: Mapping[str, str] = {},
) -> dict[str, str]:
    """Write a change, attribute by attribute: the object, then the former and the new value."""
    key = keys.get(change.row.key, change.row.key)
    about = f"{change.op} {change.row.table} {key}"
    if change.route:
        about += f" to {change.route}"
    texts = {"": about}
    for edit in change.edits:
        if edit.column in hidden:
            texts[edit.column] = HIDDEN
            continue
        former = "all former values" if edit.reset else _text(edit.old)
        now = _text(edit.new)
        texts[edit.column] = f"{former} -> {now}" if former else now
    return texts


def read_samples(file: Path, catalog: Catalog) -> Iterator[Change]:
    """Read the changes of a file of JSON lines; raise DataError naming a wrong line."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            sample = msgspec.json.decode(line, type=SampleChange)
        except (msgspec.DecodeError, UnicodeError) as error:
            hint = 'A line is, for example, {"table": "usr", "key": "idu=1", "new": {"fname": "Jo"}}.'
            raise DataError(f"{file}, line {number}: {error}.", hint=hint) from None
        yield sample.change(number, catalog)


def _cell(value: Any) -> Cell | Any:
    """Convert a list to the values of a multi-valued attribute."""
    return tuple(value) if isinstance(value, list) else value


def _text(cell: CellOrAbsent) -> str:
    if cell is ABSENT:
        return ""
    if isinstance(cell, tuple):
        return json.dumps([None if value is None else str(value) for value in cell], ensure_ascii=False)
    if cell is None:
        return "NULL"
    if isinstance(cell, str):
        return repr(cell)
    return str(cell)
