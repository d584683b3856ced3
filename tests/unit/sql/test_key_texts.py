"""Key text against column types: a value of the type, or nothing."""

from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlog.core.schema import Column
from eventlog.databases.lookups import octets_of, truth_of
from eventlog.databases.mysql.dialect import MYSQL
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.databases.postgresql.keys import FORMS, postgresql_form
from eventlog.databases.sqlite.dialect import SQLITE
from eventlog.sql.dialect import Dialect
from tests.support.shares import met, shares

VALUES: dict[str, type] = {
    "bigint": int,
    "numeric": Decimal,
    "real": float,
    "double precision": float,
    "boolean": bool,
    "text": str,
    "bpchar": str,
    "money": Decimal,
    # Times go as text, which PostgreSQL reads: its years reach further than Python's.
    "time": str,
    "timestamp": str,
    "timestamptz": str,
    "date": str,
    "uuid": UUID,
    "bytea": bytes,
}
"""What PostgreSQL's driver takes for each type that keys are bound as."""
TEXTS = frozenset(name for name, form in FORMS.items() if form.bound in ("text", "bpchar"))


PIECES = ["0", "7", "-", "+", ".", ":", "2025-02-28", "2025-02-30", "12:30:00", "24:00", " ", "T", " BC", "+02", "e5"]
WHOLE = (
    "true",
    "infinity",
    "NaN",
    "QQ==",
    "00000000-0000-0000-0000-000000000000",
    "294277-01-01",
    "4713-11-24 BC",
    "９",
)
nearly = st.lists(st.sampled_from(PIECES), max_size=4).map("".join) | st.sampled_from(WHOLE)
"""Texts as values of some type begin, go on and end."""


@shares(value=0.01, odd=0.1)
@given(st.sampled_from(sorted(set(FORMS) - TEXTS)), st.text(st.characters(codec=None)) | nearly)
@example("bigint", "0\x1f")
@example("numeric", "E0")
def test_no_text_makes_a_form_fail(type_: str, written: str) -> None:
    form = postgresql_form(type_)
    found = form.read(written)
    met(value=found is not None, odd=found is None)
    assert isinstance(found, (type(None), VALUES[form.bound]))


OTHERS: dict[Dialect, str] = {
    MYSQL: "bigint; int unsigned; decimal(8,2); double; datetime; date; time; uuid; bit",
    ORACLE: "number; char; varchar2; binary_double; date; timestamp; raw; clob",
    SQLITE: "integer; numeric; text; blob; real; ",
}
FORMS_OF_OTHERS = [(dialect, name) for dialect, names in OTHERS.items() for name in names.split("; ")]


@shares(value=0.1, odd=0.1)
@given(st.sampled_from(FORMS_OF_OTHERS), st.text(st.characters(codec=None)) | nearly)
@example((ORACLE, "number"), "E0")
def test_nor_a_form_of_another_database(of: tuple[Dialect, str], written: str) -> None:
    dialect, type_ = of
    found = dialect.lookup.compare_column(dialect, Column(name="k", type=type_)).read(written)
    met(value=found is not None, odd=found is None)
    assert isinstance(found, (type(None), str, int, float, Decimal, bytes)), "what a driver takes"


@shares(text=0.3, odd=0.1)
@given(st.sampled_from(sorted(TEXTS)), st.text(st.characters(codec=None)) | st.text("aß9\0\ud800\udfff", max_size=3))
def test_any_text_is_a_text_but_for_a_nul_and_what_is_no_unicode(type_: str, written: str) -> None:
    odd = "\0" in written or any("\ud800" <= sign <= "\udfff" for sign in written)
    met(text=not odd, odd=odd)
    assert postgresql_form(type_).read(written) == (None if odd else written)


@shares(held=0.2, larger=0.02)
@given(st.integers() | st.integers(2**63 - 2, 2**63 + 1) | st.integers(-(2**63) - 2, 1 - 2**63))
def test_whole_numbers_are_those_that_a_column_can_hold(number: int) -> None:
    held = -(2**63) <= number < 2**63
    met(held=held, larger=not held)
    assert postgresql_form("BIGINT").read(str(number)) == (number if held else None)


@given(st.binary())
def test_base64_with_and_without_line_breaks_is_bytes(content: bytes) -> None:
    assert octets_of(base64.b64encode(content).decode()) == content
    assert octets_of(base64.encodebytes(content).decode()) == content


@given(st.datetimes())
def test_times_are_read_with_nine_digits(moment: dt.datetime) -> None:
    written = f"{moment.isoformat(' ', 'microseconds')}000"
    assert postgresql_form("TIMESTAMP(6) WITHOUT TIME ZONE").read(written) == moment.isoformat(" ")
    assert postgresql_form("TIMESTAMP WITH TIME ZONE").read(written) == f"{moment.isoformat(' ')}+00:00"


@pytest.mark.parametrize(
    "type_, written",
    [
        ("integer", "1_0"),
        ("integer", "１"),
        ("numeric(10,2)", "1e999999999"),
        ("numeric", "."),
        ("numeric", "nan"),
        ("double precision", "1e999"),
        ("double precision", "1_0"),
        ("date", "2025-02-30"),
        ("date", "0000-01-01"),
        ("date", "4714-11-24 BC"),
        ("date", "5874898-01-01"),
        ("date", "10001-02-29"),
        ("timestamp", "294277-01-01 00:00:00"),
        ("timestamp", "10000-01-01 25:00:00"),
        ("time", "24:00:01"),
        ("money", "$5"),
        ("text", "a\0b"),
        ("varchar(3)", "\ud800"),
        ("timestamp", "2025-01-01 00:00:00+01"),
        ("time", "10:00:00+01"),
        ("boolean", "maybe"),
        ("bytea", "!"),
        ("uuid", "no"),
    ],
)
def test_what_is_no_value_is_nothing(type_: str, written: str) -> None:
    assert postgresql_form(type_).read(written) is None


@pytest.mark.parametrize(
    "type_, written, bound",
    [
        ("date", "infinity", "infinity"),
        ("date", "0044-03-15 BC", "0044-03-15 BC"),
        ("date", "0001-02-29 BC", "0001-02-29 BC"),
        ("date", "10000-01-01", "10000-01-01"),
        ("timestamp", "10000-01-01 00:00:00.500000000", "10000-01-01 00:00:00.500000000"),
        ("timestamptz", "-infinity", "-infinity"),
        ("timestamptz", "0044-03-15 12:00:00 BC", "0044-03-15 12:00:00+00 BC"),
        ("timestamptz", "10000-01-01", "10000-01-01 00:00:00+00"),
        ("time", "24:00:00", "24:00:00"),
        ("double precision", "Infinity", float("inf")),
        ("money", "-92233720368547758.08", Decimal("-92233720368547758.08")),
    ],
)
def test_values_at_the_ends_of_their_types_are_read(type_: str, written: str, bound: Any) -> None:
    assert postgresql_form(type_).read(written) == bound
    assert postgresql_form("numeric").read("NaN").is_nan()


@pytest.mark.parametrize("written", ["3.5e38", "-1e40", "1e-46", "1e999", "1_0", "abc"])
def test_a_number_for_which_four_bytes_have_no_room_is_no_key(written: str) -> None:
    assert postgresql_form("real").read(written) is None
    assert postgresql_form("real").read("3.4028235e38") == 3.4028235e38
    assert postgresql_form("real").read("-Infinity") == float("-inf")


@pytest.mark.parametrize("type_", ["citext", "interval", "mood", "json", "", "integer[]"])
def test_types_that_are_not_listed_are_compared_as_text(type_: str) -> None:
    assert postgresql_form(type_).as_text


@pytest.mark.parametrize("type_", ['VARCHAR(64) COLLATE "de_DE"', "character  varying(3)", "CHAR(2)"])
def test_arguments_collations_and_blanks_do_not_hide_a_type(type_: str) -> None:
    assert not postgresql_form(type_).as_text


@pytest.mark.parametrize("written, value", [("1", True), (" T ", True), ("no", False), ("off", False), ("2", None)])
def test_truth_has_many_names(written: str, value: Any) -> None:
    assert truth_of(written) is value
