"""Policies of the configuration: shared ones by name, and each output's own steps behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from eventlog.core.errors import ConfigError
from eventlog.core.outputs import OutputKeys, refuse_name
from eventlog.core.secrets import SecretSettings
from eventlog.core.suggest import did_you_mean
from eventlog.policies.steps import STEPS, Route, Steps, Unmapped, place_steps


class PolicyConfig(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Steps that outputs share by a name."""

    name: str
    steps: Steps

    def __post_init__(self) -> None:
        refuse_name("policy.name", self.name)


def steps_of(output: OutputKeys, policies: Sequence[PolicyConfig]) -> Steps:
    """List the steps of an output: those of its policies in their order, its own, and its guard."""
    known = {policy.name: policy.steps for policy in policies}
    shared = [step for name in output.policies for step in known[name]]
    steps = (*shared, *output.steps)
    if any(isinstance(step, Route) for step in steps):
        steps = place_steps(steps, *output.places)
    if output.unmapped != "send":
        # Behind all others: what they add is named by them.
        guard: Any = Unmapped(mode=output.unmapped, mapped=output.mapped)
        steps = (*steps, guard)
    return steps


def refuse_policies(outputs: Sequence[OutputKeys], policies: Sequence[PolicyConfig]) -> None:
    """Raise ConfigError for a repeated or unknown policy name."""
    names = [policy.name for policy in policies]
    doubled = [name for name in names if names.count(name) > 1]
    if doubled:
        raise ConfigError(
            f"Two policies are called {doubled[0]}.",
            hint="Each needs a `name` of its own.",
        )
    for output in outputs:
        for name in output.policies:
            if name not in names:
                hint = "Write it as [[policy]] with this `name`."
                if names:
                    hint = did_you_mean(name, names)
                message = f"An output names the policy {name}, and there is none."
                raise ConfigError(message, hint=hint)


def refuse_unknown_steps(
    origin: str,
    text: str,
    section: str,
    tables: Sequence[Mapping[str, Any]],
) -> None:
    """Refuse an unknown step or key, with its line and the nearest known one."""
    known = {str(kind.__struct_config__.tag): kind for kind in STEPS}
    for number, table in enumerate(tables):
        steps = table.get("steps")
        # Which is reported elsewhere, with what it takes.
        if not isinstance(steps, list):
            continue
        for step_index, step in enumerate(steps):
            if not isinstance(step, dict):
                continue
            where, done = f"{origin}{line_of(text, section, number, step_index)}", step.get("do")
            if done not in known:
                problem = "a step has no `do`" if done is None else f"{done!r} is nothing that a step can do"
                raise ConfigError(f"{where}: {problem}.", hint=did_you_mean(str(done or ""), known))
            keys = {field.encode_name for field in msgspec.structs.fields(known[done])}
            for key in step:
                if key != "do" and key not in keys:
                    problem = f"{key} is no key of a step with do = {done!r}"
                    raise ConfigError(f"{where}: {problem}.", hint=did_you_mean(key, keys))


# TOML allows blanks inside of the brackets.
_header: Final = re.compile(r"\s*\[\[\s*([\w.]+)\s*\]\]")


def line_of(text: str, section: str, number: int, step_index: int) -> str:
    """Find the line of a step in a file, as `, line 12`.

    Return nothing where it is not written under a heading of its own.
    """
    # Headings are counted, for TOML says nothing of lines.
    tables = steps = -1
    for row, line in enumerate(text.splitlines(), 1):
        header = _header.match(line)
        if header is None:
            continue
        if header[1] == section:
            tables, steps = tables + 1, -1
        elif header[1] == f"{section}.steps":
            steps += 1
            if (tables, steps) == (number, step_index):
                return f", line {row}"
    return ""
