"""The protocol of delivery, looked at in every state that two publishers can come to; and each rule of it is needed."""

from __future__ import annotations

import pytest

from tests.hardening.quantity import scaled
from tests.support.protocol_model import Limits, Model, Rules, Target, search

NEEDED: dict[Target, tuple[str, ...]] = {
    "transaction": (
        "open_under_lock",
        "refuse_old_epochs",
        "by_plan",
        "plan_is_noted",
        "settle_under_lock",
        "notes_outlive_holds",
    ),
    "folder": ("refuse_old_epochs", "hide_then_confirm", "sweep"),
    "receiver": ("plan_is_noted", "settle_under_lock", "notes_outlive_holds"),
}
"""The rules without which something is lost, doubled or out of order at a target of that kind.

A receiver that remembers plans needs no epoch: a publisher that was replaced sends nothing but what its heir has repeated.
"""


@pytest.mark.parametrize("target", list(NEEDED))
def test_nothing_is_lost_doubled_or_out_of_order_however_two_publishers_take_turns(target: Target) -> None:
    states, way, problem = search(Model(target), Limits(takeovers=scaled(1), kills=1, requeues=scaled(1) - 1))
    assert way is None, f"{problem}: {' · '.join(way)}"
    assert states > 1_000


@pytest.mark.parametrize("target", ["transaction", "receiver"])
def test_a_row_that_is_held_and_released_at_any_moment_comes_once_too(target: Target) -> None:
    """A file that comes again takes its own place."""
    states, way, problem = search(Model(target), Limits(takeovers=1, kills=scaled(1) - 1, requeues=0, holds=1))
    assert way is None, f"{problem}: {' · '.join(way)}"
    assert states > 1_000


def _enough(target: Target, rule: str) -> Limits:
    """What may happen in the search for what goes wrong; a file that comes again replaces itself, requeued or not."""
    if rule == "notes_outlive_holds":
        return Limits(takeovers=1, kills=0, requeues=0, holds=1)
    return Limits(takeovers=1, kills=1, requeues=0 if target == "folder" else 1)


@pytest.mark.parametrize("target, rule", [(target, rule) for target, rules in NEEDED.items() for rule in rules])
def test_without_any_of_its_rules_something_goes_wrong(target: Target, rule: str) -> None:
    _, way, problem = search(Model(target, Rules()._replace(**{rule: False})), _enough(target, rule))
    assert way, f"the search finds nothing without {rule}"
    assert problem
