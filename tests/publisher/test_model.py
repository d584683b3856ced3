"""The journal, looked at in every state that two publishers can come to, and decisions that two outputs share; and each
of the rules is needed.
"""

from __future__ import annotations

import pytest

from tests.publisher.model import Limits, Rules, search
from tests.publisher.readings import Sharing, search_readings

EVERYTHING = {
    "a row that is held and released": ("A", Limits(takeovers=1, kills=1, holds=1)),
    "two rows of an object, a takeover and a kill": ("AA", Limits(takeovers=1, kills=1, holds=0)),
    "two rows of an object, of which one is held, and a takeover": ("AA", Limits(takeovers=1, kills=0, holds=1)),
}
NEEDED = {
    "under_the_lock": Limits(takeovers=1, kills=0, holds=0),
    "refuse_old_epochs": Limits(takeovers=1, kills=0, holds=0),
    "planned_first": Limits(takeovers=0, kills=1, holds=0),
    "resolve_asks": Limits(takeovers=0, kills=1, holds=0),
    "stamp": Limits(takeovers=0, kills=0, holds=1),
    "behind_waits": Limits(takeovers=0, kills=0, holds=1),
    "others_positions": Limits(takeovers=0, kills=0, holds=0),
    "others_planned": Limits(takeovers=0, kills=1, holds=0),
    "others_parked": Limits(takeovers=0, kills=0, holds=1),
}
"""What has to happen for something to go wrong without a rule."""


@pytest.mark.parametrize("what", EVERYTHING)
def test_nothing_is_lost_doubled_or_out_of_order_however_two_publishers_take_turns(what: str) -> None:
    objects, limits = EVERYTHING[what]
    states, way, problem = search(objects, Rules(), limits)
    assert not problem, f"{problem}: {' · '.join(way)}"
    assert states > 10_000


@pytest.mark.parametrize("rule", Rules._fields)
def test_without_any_of_its_rules_something_goes_wrong(rule: str) -> None:
    _, way, problem = search("AA", Rules()._replace(**{rule: False}), NEEDED[rule])
    assert problem, f"the search finds nothing without {rule}"
    assert way


def test_no_output_gets_an_earlier_reading_after_a_later_one_however_two_share_decisions() -> None:
    states, way, problem = search_readings(rows=3, holds=1, rules=Sharing())
    assert not problem, f"{problem}: {' · '.join(way)}"
    assert states > 10_000


@pytest.mark.parametrize("rule", Sharing._fields)
def test_without_any_rule_of_what_outputs_share_something_goes_wrong(rule: str) -> None:
    _, way, problem = search_readings(rows=3, holds=1, rules=Sharing()._replace(**{rule: False}))
    assert problem, f"the search finds nothing without {rule}"
    assert way
