"""How the core comes to policies: what outputs ask of the source, and a format that is told what their
steps leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from eventlog.core.errors import ConfigError
from eventlog.core.model import Change
from eventlog.core.plugins import StepNeeds, StepsPlugin
from eventlog.core.schema import Catalog
from eventlog.core.seams import Format
from eventlog.policies.settings import PolicyConfig, refuse_policies, refuse_unknown_steps, steps_of
from eventlog.policies.steps import STEPS as KINDS
from eventlog.policies.steps import Steps

if TYPE_CHECKING:
    from eventlog.policies.bound import Policy
    from eventlog.policies.columns import Places


def needs_of(all_steps: Sequence[tuple[str, Steps]], catalog: Catalog) -> StepNeeds:
    """List the needs of these outputs' policies beside changes; `faults` name missing tables or
    attributes.
    """
    policies: list[Policy] = []
    faults: dict[str, ConfigError] = {}
    for name, steps in all_steps:
        try:
            if steps:
                policies.append(check_policy(name, steps, catalog))
        except ConfigError as error:
            faults[name] = error
    looking = [policy for policy in policies if policy.is_looking]

    def needs(change: Change) -> frozenset[str]:
        return frozenset[str]().union(*[policy.needs(change) for policy in policies])

    def looks(change: Change) -> Places:
        places: dict[str, Any] = {}
        for policy in looking:
            places |= policy.looks(change)
        return places

    if not policies:
        return StepNeeds(faults=faults)
    # As nearly always: without a call more for every change.
    if len(policies) == 1:
        return StepNeeds(policies[0].needs, policies[0].looks if looking else None, faults)
    return StepNeeds(needs, looks if looking else None, faults)


def check_policy(name: str, steps: Steps, catalog: Catalog) -> Policy:
    """Bind an output's policy to these tables.

    Raise ConfigError, beginning with its name, where it does not fit them.
    """
    # A configuration is read without what applies its steps.
    from eventlog.policies.bound import Policy

    try:
        policy = Policy(steps, catalog)
        policy.check()
    except ConfigError as error:
        raise ConfigError(f"Output {name}: {error.message}", hint=error.hint) from None
    return policy


def _format(form: Format, steps: Steps) -> Format:
    from eventlog.policies.bound import PolicyFormat

    return PolicyFormat(form, steps)


STEPS: Final = StepsPlugin(
    policy=PolicyConfig,
    steps=KINDS,
    refuse_unknown=refuse_unknown_steps,
    refuse=refuse_policies,
    of_output=steps_of,
    needs=needs_of,
    format=_format,
)
