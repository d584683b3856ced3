"""How the core comes to policies: what outputs ask of the source, and a format that is told what their
steps leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from eventlog.core.errors import ConfigError
from eventlog.core.model import Change
from eventlog.core.plugins import StepNeeds, StepsPlugin
from eventlog.core.schema import Catalog
from eventlog.core.steps import Steps
from eventlog.policies.bound import Policy, PolicyFormat
from eventlog.policies.columns import Places


def needs_of(all_steps: Sequence[tuple[str, Steps]], catalog: Catalog) -> StepNeeds:
    """What the policies of these outputs need beside changes.

    ConfigError, beginning with the output's name, where one names a table or attribute that there
    is not.
    """
    policies = [checked(name, steps, catalog) for name, steps in all_steps if steps]
    looking = [policy for policy in policies if policy.is_looking]

    def needs(change: Change) -> frozenset[str]:
        return frozenset[str]().union(*[policy.needs(change) for policy in policies])

    def looks(change: Change) -> Places:
        places: dict[str, Any] = {}
        for policy in looking:
            places |= policy.looks(change)
        return places

    if not policies:
        return StepNeeds(None, None)
    # As nearly always: without a call more for every change.
    if len(policies) == 1:
        return StepNeeds(policies[0].needs, policies[0].looks if looking else None)
    return StepNeeds(needs, looks if looking else None)


def checked(name: str, steps: Steps, catalog: Catalog) -> Policy:
    """The policy of an output for these tables.

    ConfigError, beginning with its name, where it does not fit them.
    """
    try:
        policy = Policy(steps, catalog)
        policy.check()
    except ConfigError as error:
        raise ConfigError(f"Output {name}: {error.message}", hint=error.hint) from None
    return policy


STEPS: Final = StepsPlugin(needs=needs_of, format=PolicyFormat)
