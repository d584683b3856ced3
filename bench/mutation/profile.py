"""A plugin for pytest: the profile `mutants` of Hypothesis. A mutant is killed by any example; nobody reads the smallest one.

Looking for the smallest example took ten seconds of a mutant that had failed after a hundredth of one. The examples are the
same in each run, so that a mutant that survives does so again.
"""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "mutants",
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=10,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
