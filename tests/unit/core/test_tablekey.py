"""The table_key grammar: what is read is what was written, and what does not fit is named by its place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import KeySyntaxError
from eventlog.core.tablekey import SPECIAL, TableKey, arrange_key, parse, quote_value
from tests.support.cost import is_linear
from tests.support.shares import met, shares
from tests.support.strategies import anything, key_columns, tricky

DOCUMENTED = r'pkey=", ; \' + \" = \\ < >"'.replace(r"\'", "'")
blanks = st.text(" ", max_size=3)
values = st.sampled_from(["", "x", " x ", '"x"', ' "x" ', '"+"', '"\\""', '"', 'x"', '"x', "\\"])
nearly = st.lists(st.tuples(st.sampled_from("ab"), values), min_size=1, max_size=2).map(
    lambda parts: "+".join([f"{name}={value}" for name, value in parts])
)
"""Keys of one or two columns, whose values are quoted rightly, wrongly, or not at all."""


@given(st.dictionaries(st.sampled_from(["a", "b", "Ü", "a b", "\t"]), anything) | key_columns)
def test_what_is_written_is_read_again(columns: dict[str, str]) -> None:
    key = TableKey.of(columns or {"a": ""})
    assert TableKey.parse(str(key)).columns == (columns or {"a": ""})
    assert list(parse(key.text).columns) == list(key.columns)


@given(st.data(), key_columns)
def test_a_key_is_equal_however_it_is_written(data: st.DataObject, columns: dict[str, str]) -> None:
    written = "+".join(_carelessly(data, name, value) for name, value in columns.items())
    key, straight = parse(written), TableKey.of(columns)
    assert key == straight
    assert hash(key) == hash(straight)
    assert key.canonical == straight.text
    assert str(key) == written


@shares(keys=0.1, errors=0.3)
@given(anything | st.text(SPECIAL + " a1") | nearly)
def test_any_text_is_a_key_or_a_syntax_error_at_a_place_in_it(text: str) -> None:
    key = _read(text)
    met(keys=not isinstance(key, KeySyntaxError), errors=isinstance(key, KeySyntaxError))
    if isinstance(key, KeySyntaxError):
        assert 1 <= key.column <= len(text) + 1
        assert key.text == text
    else:
        assert str(key) == text
        assert parse(key.canonical) == key


@shares(quoted=0.05, plain=0.2)
@given(anything | tricky)
def test_quotes_stand_only_where_they_are_required(value: str) -> None:
    required = any(character in SPECIAL for character in value) or value != value.strip(" ")
    met(quoted=required, plain=not required)
    assert (quote_value(value) != value) == required
    assert quote_value(value).startswith('"') == required


@pytest.mark.parametrize(
    "text, columns",
    [
        ("idu=1", {"idu": "1"}),
        ("pk_empno=1", {"pk_empno": "1"}),
        ("pkey1=value1+pkey2=value2", {"pkey1": "value1", "pkey2": "value2"}),
        (DOCUMENTED, {"pkey": ", ; ' + \" = \\ < >"}),
        ('pkey1=v1+pkey2="a+b"', {"pkey1": "v1", "pkey2": "a+b"}),
        ("idu= 1", {"idu": "1"}),
        (" idu = 1 ", {"idu": "1"}),
        ("first name = John Paul ", {"first name": "John Paul"}),
        ('idu=  " 1 "  ', {"idu": " 1 "}),
        ('a="" + b=', {"a": "", "b": ""}),
        ("a=+b=1", {"a": "", "b": "1"}),
        ("a=\t1", {"a": "\t1"}),
        ("a=\u00a01\n", {"a": "\u00a01\n"}),
        ("\ta=1", {"\ta": "1"}),
    ],
)
def test_a_key_is_read(text: str, columns: dict[str, str]) -> None:
    key = TableKey.parse(text)
    assert key.columns == columns
    assert str(key) == key.text == text


@pytest.mark.parametrize(
    "text, column, problem",
    [
        ("", 1, "a column name and '=' are missing"),
        ("   ", 4, "a column name and '=' are missing"),
        ("idu", 4, "'=' is missing after the column name"),
        ("idu ", 5, "'=' is missing after the column name"),
        ("=1", 1, "a column name is missing before '='"),
        ("  =1", 3, "a column name is missing before '='"),
        ("+", 1, "'+' cannot be in a column name"),
        ("idu+b=1", 4, "'+' cannot be in a column name"),
        ('"idu"=1', 1, "'\"' cannot be in a column name"),
        ("idu=1+", 7, "a column name and '=' are missing"),
        ("idu=1++b=2", 7, "'+' cannot be in a column name"),
        ("idu=1+=2", 7, "a column name is missing before '='"),
        ("a=1+a=2", 5, "the column 'a' is there twice"),
        ("a=1+b=2+ a =3", 9, "the column 'a' is there twice"),
        ('idu="1', 5, "the quote that opens here is never closed"),
        ('idu=  "1+b=2', 7, "the quote that opens here is never closed"),
        ('idu="', 5, "the quote that opens here is never closed"),
        (r'idu="1\"', 5, "the quote that opens here is never closed"),
        (r'idu="a\nb"', 7, r"only \" and \\ can follow a backslash"),
        ('idu="a\\', 7, r"only \" and \\ can follow a backslash"),
        ('idu="1"2', 8, "after the closing quote comes '+' or the end, not '2'"),
        ('idu="1"  "2"', 10, "after the closing quote comes '+' or the end, not '\"'"),
        ('idu="1"\t', 8, "after the closing quote comes '+' or the end, not '\\t'"),
        ('idu=1"2"', 6, "'\"' needs double quotes around the value"),
        ('idu=\t"2"', 6, "'\"' needs double quotes around the value"),
    ],
)
def test_what_does_not_fit_is_named_by_its_place(text: str, column: int, problem: str) -> None:
    with pytest.raises(KeySyntaxError) as caught:
        parse(text)
    assert (caught.value.column, caught.value.text) == (column, text)
    assert str(caught.value) == f"table_key {text!r}, column {column}: {problem}."


@pytest.mark.parametrize(
    "huge",
    [
        lambda size: "a=" + "x" * size,
        lambda size: 'a="' + "x" * size,
        lambda size: 'a="' + '\\"' * (size // 2) + '"',
        lambda size: 'a="' + "\\\\" * (size // 2),
        lambda size: "a=" + " " * size + "x",
        lambda size: " " * size,
        lambda size: "a" * size,
        lambda size: "+".join(f"c{number:06}=1" for number in range(size // 10)),
        lambda size: "+" * size,
    ],
)
def test_a_long_text_is_read_in_linear_time(huge: Callable[[int], str]) -> None:
    assert is_linear(lambda size: partial(_read, huge(size)), 10_000)


def test_keys_are_told_apart_by_columns_values_and_order() -> None:
    """Asked both ways: a Struct brings an answer of its own to the second question."""
    key = parse("a=1+b=2")
    others = [parse(text) for text in ('a="1" + b=2', "b=2+a=1", "a=1+b=3", "A=1+b=2")]
    assert [key == other for other in [*others, key.text]] == [True, False, False, False, False]
    assert [key != other for other in [*others, key.text]] == [False, True, True, True, True]
    assert len({key, parse("a= 1+b=2"), parse("a=1")}) == 2


def test_a_key_is_arranged_as_its_table_has_it() -> None:
    key = TableKey.of([("B", "2"), ("a", "1")])
    assert arrange_key(key, {"a": "A", "b": "b"}, str.casefold) == "A=1+b=2"
    assert arrange_key(key, {"b": "b", "a": "a"}, str.casefold) == "b=2+a=1"
    assert arrange_key(parse('a="1"'), {"a": "a"}, str.casefold) == "a=1"
    assert arrange_key(parse("b=a"), {"a": "a"}, str.casefold) is None, "a is what it holds, not what it is called"


@pytest.mark.parametrize("names", ["a", "ac", "abc", "", "AB"])
def test_a_key_with_other_columns_cannot_be_arranged(names: str) -> None:
    assert arrange_key(parse("b=2+a=1"), {name: name for name in names}, str.casefold) is None


def _read(text: str) -> TableKey | KeySyntaxError:
    try:
        return parse(text)
    except KeySyntaxError as error:
        return error


def _carelessly(data: st.DataObject, name: str, value: str) -> str:
    """One part with needless blanks, and quotes needless or not."""
    needless = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    shown = needless if data.draw(st.booleans()) else quote_value(value)
    around = [data.draw(blanks) for _ in range(4)]
    return f"{around[0]}{name}{around[1]}={around[2]}{shown}{around[3]}"
