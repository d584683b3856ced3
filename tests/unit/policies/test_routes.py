"""Routes: where each change goes, by its own values; what gives no place has a stated outcome."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.core.errors import ConfigError
from eventlog.core.model import Change, Edit, Op, Refusal, RowId
from eventlog.core.outputs import PlaceKind
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.policies import routes, steps
from eventlog.policies.bound import Policy
from eventlog.policies.steps import Step, place_steps

CATALOG = Catalog(
    [
        Table(
            name="usr",
            columns=(Column(name="idu", key=1), Column(name="city"), Column(name="salary", type="integer")),
            children=(Child(name="phone", parent_key=("idu",), columns=(Column(name="no"),)),),
        ),
        Table(name="b c", schema="s", columns=(Column(name="id", key=1),)),
    ]
)
BY_CITY = steps.Route(to="{class}/{new.city}", classes=("usr",))


def change(op: Op = Op.MODIFY, *edits: Edit, **also: Any) -> Change:
    return Change(row=RowId(None, "usr", "idu=1"), op=op, edits=edits, positions=((7,),), **also)


def route(found: Change | Refusal) -> str:
    return found.route if isinstance(found, Change) else found.note


def told(change: Change, *some: Step, kind: PlaceKind = "folder") -> str:
    return route(Policy(place_steps(some, kind, "it"), CATALOG).apply(change))


CITY = Edit(column="city", old="Rome", new="Oslo")


@pytest.mark.parametrize(
    "one, expected",
    [
        (change(Op.ADD, Edit(column="city", new="Oslo")), "usr/Oslo"),
        (change(Op.MODIFY, CITY), "usr/Oslo"),
        (change(Op.DELETE, Edit(column="city", old="Rome")), "usr/Rome"),
        (change(Op.MODIFY, Edit(column="salary", new=1), beside={"city": "Rome"}), "usr/Rome"),
        (change(Op.MODIFY, Edit(column="city", new="a/../b\0")), "usr/a%2f..%2fb%00"),
    ],
)
def test_a_change_goes_where_its_own_values_say(one: Change, expected: str) -> None:
    assert told(one, BY_CITY) == expected


@pytest.mark.parametrize(
    "one, why",
    [
        (change(Op.MODIFY, Edit(column="city", old="Rome", new=None)), "city is NULL"),
        (change(Op.DELETE), "city is not known"),
        (change(Op.MODIFY, Edit(column="salary", new=1), beside={}), "city is not known"),
        (change(Op.MODIFY, Edit(column="city", new="")), "a value in it is empty"),
        (change(Op.MODIFY, Edit(column="city", new="x" * 300)), "it would be too long"),
        (change(Op.TRUNCATE), "it is about the whole table"),
    ],
)
def test_what_gives_no_place_goes_otherwise_or_ends_with_the_reason(one: Change, why: str) -> None:
    said = f"step 1 of the policy: `to` gives no folder, because {why}."
    for _ in range(2):
        assert told(one, BY_CITY) == said
    assert told(one, steps.Route(to=BY_CITY.to, otherwise="../others")) == "%2e%2e/others"


def test_several_values_lead_nowhere() -> None:
    several = change(Op.MODIFY, Edit(column="phone.no", new=("1", "2")))
    assert "phone.no is several values" in told(several, steps.Route(to="{new.phone.no}", classes=("usr",)))


def test_keys_are_always_known_and_numbers_are_one_text() -> None:
    by_key = steps.Route(to="{new.idu}_{new.salary}", classes=("usr",), otherwise="x")
    assert told(change(Op.MODIFY, Edit(column="salary", new="07")), by_key) == "1_7"
    assert told(change(Op.DELETE), steps.Route(to="{new.idu}", classes=("usr",))) == "1"


def test_the_last_route_counts_and_names_are_those_of_its_step() -> None:
    renamed = steps.Rename(class_name="User", attributes={"city": "Town"}, classes=("usr",))
    later = steps.Route(to="{class}.{table}.{new.Town}", classes=("usr",))
    assert told(change(Op.MODIFY, CITY), BY_CITY, renamed, later) == "User.usr.Oslo"
    assert told(change(Op.MODIFY, CITY), steps.Route(to="{schema}x", otherwise="o", classes=("usr",))) == "o"


def test_a_route_sees_what_a_step_has_hidden_as_it_is_hidden() -> None:
    hidden = steps.Redact(attributes=("city",), value="secret")
    assert told(change(Op.MODIFY, CITY), hidden, BY_CITY) == "usr/secret"


def test_what_a_route_needs_is_read_beside() -> None:
    policy = Policy((BY_CITY,), CATALOG)
    assert policy.needs(change(Op.MODIFY, Edit(column="salary", new=1))) == {"city"}
    assert policy.needs(change(Op.MODIFY, CITY)) == frozenset()
    assert policy.needs(change(Op.DELETE)) == frozenset()


def test_values_of_a_place_are_not_hidden_any_more() -> None:
    drop = steps.Drop(attributes=("city", "salary"), classes=("usr",))
    assert Policy((drop,), CATALOG).hidden == {(None, "usr"): {"city", "salary"}}
    assert Policy((BY_CITY, drop), CATALOG).hidden == {(None, "usr"): {"salary"}}


@pytest.mark.parametrize(
    "step, kind, said",
    [
        (
            steps.Route(to="{table}"),
            "topic",
            "Step 1 (do = 'route'): `to` gives no topic for s.b c, because a topic has",
        ),
        (steps.Route(to="a.{table}"), "table", "can give no table: a table's name has letters"),
        (steps.Route(to="a b/{table}"), "topic", "can give no topic"),
        (steps.Route(to="/a"), "folder", "can give no folder: a part of it is empty"),
        (
            steps.Route(to="{table}", otherwise="a//b"),
            "folder",
            "The `otherwise` of a step with do = 'route' is no folder",
        ),
        (steps.Route(to="a"), None, "cannot be combined with it, which is one place"),
    ],
)
def test_what_can_be_known_before_is_refused_before(step: steps.Route, kind: PlaceKind | None, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Policy(place_steps((step,), kind, "it"), CATALOG)
    assert said in str(caught.value)


def test_unknown_attributes_have_a_nearest_name() -> None:
    policy = Policy((steps.Route(to="{new.cty}", otherwise="x"),), CATALOG)
    with pytest.raises(ConfigError, match=r"cty is no attribute. Did you mean city\?"):
        policy.check()


def test_a_template_without_text_is_none() -> None:
    with pytest.raises(ConfigError, match="empty `to`"):
        steps.Route(to="")
    with pytest.raises(ConfigError, match=r"names \{city\}"):
        steps.Route(to="{city}")


def test_few_places_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "KNOWN_PLACES", 2)
    policy = Policy((BY_CITY,), CATALOG)
    for city in ("a", "b", "c", "c", "a"):
        assert route(policy.apply(change(Op.MODIFY, Edit(column="city", new=city)))) == f"usr/{city}"
