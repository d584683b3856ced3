"""Values: each category's type and text, from the log's text and from what reading back gives."""

from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.core.schema import Child, Column, Table
from eventlog.core.sql_types import Category
from eventlog.xds.values import AsText, Fields, Settings, TimeSyntax, ValueText, reading, values
from tests.support.shares import met, shares
from tests.support.strategies_xds import logged, read_back

C = Category
GOOD = [
    (C.STRING, "Jack", ("string", "Jack")),
    (C.STRING, "", ("string", "")),
    (C.STRING, 5, ("string", "5")),
    (C.STRING, True, ("string", "true")),
    (C.STRING, dt.datetime(2025, 3, 23, 10, 57, 19, 250000), ("string", "2025-03-23 10:57:19.250000000")),
    (C.STRING, dt.date(2025, 3, 23), ("string", "2025-03-23")),
    (C.STRING, dt.time(10, 57, 19), ("string", "10:57:19")),
    (C.NUMBER, "$1,234.50", ("string", "$1,234.50")),
    (C.NUMBER, Decimal("1E+3"), ("string", "1000")),
    (C.NUMBER, Decimal("10.50"), ("string", "10.50")),
    (C.NUMBER, Decimal("sNaN"), ("string", "NaN")),
    (C.NUMBER, Decimal("-Infinity"), ("string", "-Infinity")),
    (C.NUMBER, 1.5, ("string", "1.5")),
    (C.NUMBER, 7.0, ("string", "7")),
    (C.NUMBER, float("inf"), ("string", "Infinity")),
    (C.NUMBER, Decimal("1E+200000"), ("string", "1" + "0" * 200_000)),
    (C.INT, Decimal("1E+200000"), ("int", "1" + "0" * 200_000)),
    (C.INT, "5.000", ("int", "5")),
    (C.INT, True, ("int", "1")),
    (C.INT, 5.0, ("int", "5")),
    (C.INT, Decimal("1E+2"), ("int", "100")),
    (C.OCTET, b"\xaa\xaa", ("octet", "qqo=")),
    (C.OCTET, bytearray(b"\xbb\xbb"), ("octet", "u7s=")),
    (C.OCTET, memoryview(b"\xbb\xbb"), ("octet", "u7s=")),
    (C.OCTET, b"", ("octet", "")),
    (C.OCTET, "qq\r\no=\n", ("octet", "qqo=")),
    (C.OCTET, "", ("octet", "")),
    (C.STATE, b"\0", ("state", "false")),
    (C.STATE, b"\1", ("state", "true")),
    (C.STATE, True, ("state", "true")),
    (C.STATE, Decimal(0), ("state", "false")),
    (C.STATE, 1.0, ("state", "true")),
    (C.STATE, " TRUE ", ("state", "true")),
    (C.DATE, "2025-03-23", ("time", "1742688000")),
    (None, "x", ("string", "x")),
    (None, b"\xaa\xaa", ("octet", "qqo=")),
    (None, 5, ("string", "5")),
]
BAD = [
    (C.STRING, b"ab", "binary data \\(2 bytes\\) is not text"),
    (C.STRING, object, "<class 'object'> is not text"),
    (C.NUMBER, Decimal("1E+999999"), "a number that a database can hold"),
    (C.NUMBER, 10**5000, "^a number of thousands of digits is not a number that a database can hold"),
    (C.INT, "abc", "'abc' is not a whole number; correct the value, or the column's type in the schema"),
    (C.INT, "", "'' is not a whole number"),
    (C.INT, "٥", "is not a whole number"),
    (C.INT, "5\n", "is not a whole number"),
    (C.INT, 1.5, "1.5 is not a whole number"),
    (C.INT, float("nan"), "nan is not a whole number"),
    (C.INT, Decimal("1E+999999"), "is not a whole number"),
    (C.INT, b"5", "is not a whole number"),
    (C.OCTET, "qqo", "'qqo' is not binary data in Base64"),
    (C.OCTET, "q===", "is not binary data in Base64"),
    (C.OCTET, "qq o=AAA", "is not binary data in Base64"),
    (C.OCTET, "é234", "is not binary data in Base64"),
    (C.OCTET, 5, "5 is not binary data in Base64"),
    (C.STATE, "maybe", "'maybe' is not a truth value"),
    (C.STATE, "true\t", "is not a truth value"),
    (C.STATE, 2, "2 is not a truth value"),
    (C.STATE, Decimal("sNaN"), "NaN'\\) is not a truth value"),
    (C.INT, Decimal("sNaN"), "is not a whole number"),
    (C.STATE, b"\2", "is not a truth value"),
    (C.STATE, dt.date(2025, 1, 1), "is not a truth value"),
    (C.DATE, "soon", "'soon' is no date or time"),
    (None, object, "is not text"),
]


def xds_value(value: object, category: Category | None, syntax: TimeSyntax = 1) -> ValueText:
    return reading(category, syntax)(value)


@pytest.mark.parametrize("category, value, expected", GOOD)
def test_a_value_gets_its_type_and_text(category: Category | None, value: object, expected: tuple[str, str]) -> None:
    assert xds_value(value, category) == expected


@pytest.mark.parametrize("category, value, words", BAD, ids=range(len(BAD)))
def test_a_value_that_does_not_fit_is_refused(category: Category | None, value: object, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        xds_value(value, category)


@pytest.mark.parametrize("text", ["1", "t", "true", "y", "yes", "0", "f", "false", "n", "no"])
def test_truth_is_written_in_any_case(text: str) -> None:
    expected = ("state", "true" if text in ("1", "t", "true", "y", "yes") else "false")
    assert [xds_value(written, C.STATE) for written in (text, text.upper(), text.title())] == [expected] * 3


@given(st.binary())
def test_binary_from_the_log_and_from_reading_back_are_one(data: bytes) -> None:
    folded = base64.encodebytes(data).decode().replace("\n", "\r\n")
    assert xds_value(folded, C.OCTET) == xds_value(data, C.OCTET)
    assert base64.b64decode(xds_value(data, C.OCTET)[1]) == data


@given(st.integers(-(10**40), 10**40))
def test_whole_numbers_are_one_in_every_guise(number: int) -> None:
    guises = [number, str(number), Decimal(number), f" {number} ", f"{number}.0"]
    assert {xds_value(guise, C.INT) for guise in guises} == {("int", str(number))}


@shares(written=0.3, refused=0.1)
@given(logged | read_back, st.sampled_from([*C, None]), st.sampled_from([1, 2, 3]))
def test_any_value_is_written_or_refused_in_words(value: object, category: Category | None, syntax: object) -> None:
    try:
        kind, text = xds_value(value, category, syntax)  # type: ignore[arg-type] # one of the three
    except ExpressionError as error:
        kind, text = "refused", str(error)
    met(written=kind != "refused", refused=kind == "refused")
    assert kind in ("string", "octet", "int", "state", "time") or (kind == "refused" and value_shown(value) in text)


def test_among_several_values_only_the_one_that_cannot_be_said_is_text() -> None:
    """What replaces a value that has no other form is told as it is, and its neighbours keep their type."""
    phones = Child(
        name="usr_phone",
        parent_key=("idu",),
        columns=(Column(name="idu", type="INTEGER"), Column(name="since", type="INTEGER")),
    )
    usr = Table(name="usr", columns=(Column(name="idu", type="INTEGER", key=1),), children=(phones,))
    field = Fields(usr, None, Settings())["usr_phone.since"]
    assert values(field, (5, AsText("never"), None), "usr_phone.since") == [
        '<value type="int">5</value>',
        '<value type="string">never</value>',
    ]
    with pytest.raises(ExpressionError, match="'never' is not a whole number"):
        values(field, (5, "never"), "usr_phone.since")
