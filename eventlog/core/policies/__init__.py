"""Policies: what of the changes an output is told, and in which words. Pure: changes in, changes
out.

Steps are read from the configuration, bound to the tables of a source, and applied to one change
after the other, between the rules and a format. The publisher, conversions, Spark and `eventlog
explain` call the same.
"""

from eventlog.core.policies.bound import Policy, Traced
from eventlog.core.policies.steps import Step, Steps

__all__ = ["Policy", "Step", "Steps", "Traced"]
