"""Dates and numbers in other forms, and functions of other packages: what cannot be done has a stated outcome."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import ConfigError
from eventlog.core.model import ABSENT, Change, Edit, Op, Refusal, RowId, Value
from eventlog.core.schema import Catalog, Column, Table
from eventlog.policies import steps
from eventlog.policies.bound import Policy
from eventlog.policies.steps import Step
from eventlog.policies.values import format_date, format_number
from tests.support.plugins import Site, site

__all__ = ["site"]

CATALOG = Catalog(
    [
        Table(
            name="usr",
            columns=(
                Column(name="idu", key=1),
                Column(name="born", type="timestamp"),
                Column(name="salary", type="numeric"),
                Column(name="name"),
            ),
        )
    ]
)


def change(column: str, new: Any, **also: Any) -> Change:
    edits = (Edit(column=column, old=None, new=new),)
    return Change(row=RowId(None, "usr", "idu=1"), op=Op.MODIFY, edits=edits, positions=((7,),), **also)


def told(step: Step, one: Change) -> Any:
    """The new values by attribute, or the note of a refusal."""
    found = Policy((step,), CATALOG).apply(one)
    return found.note if isinstance(found, Refusal) else {edit.column: edit.new for edit in found.edits}


@pytest.mark.parametrize(
    "value, form, zone, expected",
    [
        ("2026-01-02 03:04:05", "%d.%m.%Y %H:%M", "UTC", "02.01.2026 03:04"),
        ("2026-07-01 23:30:00", "%Y-%m-%d %H:%M %z", "Europe/Berlin", "2026-07-02 01:30 +0200"),
        (dt.datetime(2026, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=9))), "%d%%%H", "UTC", "01%15"),
        (dt.date(2026, 1, 2), "%d/%m", "America/New_York", "02/01"),
        ("2026-01-02", "%d/%m", "America/New_York", "02/01"),
        ("0007-01-02", "%Y %%Y", "UTC", "0007 %Y"),
    ],
)
def test_dates_are_written_in_a_form_and_a_zone(value: Value, form: str, zone: str, expected: str) -> None:
    assert told(steps.Date(attributes=("born",), form=form, zone=zone), change("born", value)) == {"born": expected}


@pytest.mark.parametrize(
    "value, also, expected",
    [
        ("1234567.005", {"decimals": 2, "decimal_mark": ",", "group_mark": "."}, "1.234.567,01"),
        (Decimal("1E+3"), {}, "1000"),
        (-0.5, {"decimals": 0}, "-1"),
        (7, {"decimals": 3}, "7.000"),
        ("7.10", {"group_mark": " "}, "7.10"),
    ],
)
def test_numbers_are_written_with_marks_and_decimals(value: Value, also: dict[str, Any], expected: str) -> None:
    assert told(steps.Number(attributes=("salary",), **also), change("salary", value)) == {"salary": expected}


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**12), max_value=10**12))
def test_a_number_says_the_same_in_another_form(value: Decimal) -> None:
    said = format_number(value, 3, ",", ".")
    assert said is not None
    assert Decimal(said.replace(".", "").replace(",", ".")) == value


@pytest.mark.parametrize("value", ["x", "", "NaN", "1e999", True, b"7"])
def test_what_is_no_number_is_none(value: Value) -> None:
    assert format_number(value, 2, ".", "") is None


@pytest.mark.parametrize(
    "made, column, kind",
    [
        (lambda on_error: steps.Date(attributes=("born",), form="%Y", on_error=on_error), "born", "time"),
        (lambda on_error: steps.Number(attributes=("salary",), on_error=on_error), "salary", "number"),
    ],
)
def test_what_is_none_of_it_has_a_stated_outcome(
    made: Callable[[Literal["refuse", "null", "keep"]], Step], column: str, kind: str
) -> None:
    odd = change(column, "secret")
    assert told(made("refuse"), odd) == f"step 1 of the policy: the value of {column} is no {kind}."
    assert told(made("null"), odd) == {column: None}
    assert told(made("keep"), odd) == {column: "secret"}
    assert told(made("refuse"), change(column, None)) == {column: None}
    assert told(made("refuse"), change(column, ABSENT)) == {column: ABSENT}
    assert told(made("refuse"), change("name", "x")) == {"name": "x"}


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: steps.Date(attributes=("born",), form="%A"), "it takes %Y"),
        (lambda: steps.Date(attributes=("born",), form="100%"), "it takes %Y"),
        (lambda: steps.Date(attributes=("born",), form=""), "it takes %Y"),
        (lambda: steps.Date(attributes=("born",), form="%Y", zone="Berlin"), "which is no zone"),
        (lambda: steps.Date(attributes=("born",), form="%Y", zone="../etc/passwd"), "which is no zone"),
        (lambda: steps.Number(attributes=("salary",), decimals=31), "between 0 and 30"),
        (lambda: steps.Number(attributes=("salary",), decimal_mark=""), "needs a `decimal_mark`"),
        (lambda: steps.Number(attributes=("salary",), group_mark="."), "not its `group_mark`"),
        (lambda: steps.Call(attribute="x", function="f", of=()), "has no `of`"),
    ],
)
def test_steps_that_say_nothing_are_refused(make: Callable[[], Step], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make()


def greet(values: dict[str, Any]) -> Any:
    return f"{values.get('name')} {values.get('salary')}"


def fail(values: dict[str, Any]) -> Any:
    raise ValueError(values["name"])


def several(values: dict[str, Any]) -> Any:
    return [*values]


def nothing(values: dict[str, Any]) -> Any:
    return None


NO_FUNCTION = 7


@pytest.fixture(autouse=True)
def _offered(site: Site) -> None:
    names = ("greet", "fail", "several", "nothing", "NO_FUNCTION", "missing")
    site.install("eventlog-greetings", {"policies": {name: f"{__name__}:{name}" for name in names}})


def call(function: str, **also: Any) -> steps.Call:
    return steps.Call(attribute="said", function=function, of=("name", "salary", "idu"), **also)


def test_a_function_makes_a_value_of_what_is_known() -> None:
    policy = Policy((call("greet"),), CATALOG)
    assert policy.needs(change("name", "Jo")) == {"salary"}
    assert policy.needs(change("born", "2026-01-01")) == frozenset()
    assert told(call("greet"), change("name", "Jo", beside={"salary": "07"})) == {"name": "Jo", "said": "Jo 7"}
    assert told(call("nothing"), change("name", "Jo")) == {"name": "Jo", "said": None}
    assert told(call("greet"), change("born", None)) == {"born": None}


def test_a_function_that_fails_is_an_outcome_of_the_row() -> None:
    note = "step 1 of the policy: the value of said is not known, because {}."
    assert told(call("fail"), change("name", "secret")) == note.format("fail ended with ValueError")
    assert told(call("several"), change("name", "Jo")) == note.format("several gave something that is no single value")
    assert told(call("fail", on_error="null"), change("name", "Jo")) == {"name": "Jo", "said": None}


@pytest.mark.parametrize(
    "function, said",
    [
        ("gret", "no package offers gret among the entry points eventlog.policies. Did you mean greet?"),
        (
            "missing",
            "The function of policies missing of the package eventlog-greetings 1.0 cannot be loaded: AttributeError",
        ),
        (
            "NO_FUNCTION",
            "The function of policies NO_FUNCTION of the package eventlog-greetings 1.0 cannot be used: it is of",
        ),
    ],
)
def test_a_function_that_is_not_there_is_named_before(function: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Policy((call(function),), CATALOG)
    assert f"Step 1 (do = 'call'): {said}" in str(caught.value)


def test_what_lies_before_all_times_is_no_time() -> None:
    assert (
        format_date("0001-01-01 00:00:00", "%Y", steps.Date(attributes=(), form="%Y", zone="America/New_York").clock())
        is None
    )
    assert format_date(7, "%Y", dt.UTC) is None


def test_a_step_for_attributes_that_a_table_has_not_does_nothing() -> None:
    assert told(steps.Number(attributes=("wage",)), change("name", "x")) == {"name": "x"}


def test_where_no_package_offers_functions_none_is_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.policies.expressions.offers", lambda _group: [])
    with pytest.raises(ConfigError, match="no package offers greet") as caught:
        Policy((call("greet"),), CATALOG)
    assert caught.value.hint == "Install the package that has it where eventlog runs."
