"""What verify makes of several values, and of ids that a server has of other objects."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest

from eventlog.compare.sides import Compared
from eventlog.compare.texts import write_several
from eventlog.core.schema import Attribute, Column, Table
from eventlog.sinks.scim.paths import read_path
from eventlog.sinks.scim.plugin import ScimOutput
from eventlog.sinks.scim.settings import ScimSettings
from eventlog.verify.scim import ComparedValue, NamedObjects, ScimTarget, _begin_names, _key, _one


def test_several_values_are_one_text_without_order_or_number() -> None:
    assert write_several("varchar(9)", ["b", "\u00e4", None, "b"]) == write_several("varchar(9)", ["\u00e4", "b"])
    assert write_several("integer", ["2", 10]) == '["10", "2"]'
    assert write_several("numeric(9, 2)", [Decimal("1.50")]) == write_several("numeric(9, 2)", ["1.5"])
    assert write_several("integer", [None]) is write_several("integer", []) is None


@pytest.mark.parametrize(
    "known, shown",
    [
        ("usr idu=7", "7"),
        ("app.usr idu=7", "7"),
        ("grp idg=7", "grp idg=7"),  # of another table than the column refers to
        ("usr idu=7+part=8", "idu=7+part=8"),
        (f"usr {'x' * 130} 0123456789abcdef", f"{'x' * 130} 0123456789abcdef"),  # its name was shortened
        (None, "id-there"),  # nobody of ours
    ],
)
def test_an_id_is_shown_by_the_key_of_our_object(known: str | None, shown: str) -> None:
    column = Column(name="boss", type="integer", references="usr")
    begins = _begin_names(Table(name="usr", schema="app", columns=(column,)), "usr")
    value = ComparedValue(Attribute(name="boss", column=column), read_path("manager.value", "here"), begins)
    assert _one(value, "id-there", NamedObjects({} if known is None else {"id-there": known}, lambda _: None)) == shown
    assert _one(value, True, NamedObjects({}, lambda _: None)) == 1
    assert _one(value, None, NamedObjects({}, lambda _: None)) is None


def test_columns_that_say_something_else_there_are_not_compared() -> None:
    columns = {"login": "userName", "flag": "active", "works": "active", "left": "title"}
    types = {"idu": "integer", "login": "text", "flag": "text", "works": "integer"}
    made = [Column(name=name, type=kind, key=1 if name == "idu" else None) for name, kind in types.items()]
    table = Table(name="usr", columns=tuple(made))

    def target(*names: str) -> ScimTarget:
        mapping = {"tables": {"usr": {"columns": {name: columns[name] for name in names}}}}
        output = ScimOutput(url="http://there", scim=msgspec.convert(mapping, ScimSettings))
        return ScimTarget(output, dict)

    assert target("login", "works").columns(table) == frozenset({"idu", "login", "works"})
    # A text that is true or false there, and a column that is gone.
    assert target("login", "flag", "left").columns(table) == frozenset({"idu", "login"})
    assert target("login").several(table) == frozenset()
    assert target("login").columns(Table(name="grp", columns=())) is None


def test_a_name_that_was_shortened_has_no_key() -> None:
    compared = Compared(key=("a", "b"), names=(), types=("integer", "text"))
    assert _key("b=x+a=1", compared) == ["1", "x"]
    assert _key("a=1", compared) is None
    assert _key(f"a={'x' * 128} 0123", Compared(key=("a",), names=(), types=("text",))) == [f"{'x' * 128} 0123"]
    assert _key(f"{'x' * 130} 0123", compared) is None
