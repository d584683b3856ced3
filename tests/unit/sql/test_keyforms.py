"""Key text against column types: a value of the type, or nothing."""

from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.sql.keyforms import octets, state
from eventlog.sql.postgresql.keys import FORMS, postgresql_form

VALUES: dict[str, type] = {
    "bigint": int,
    "numeric": Decimal,
    "double precision": float,
    "boolean": bool,
    "text": str,
    "bpchar": str,
    "time": dt.time,
    "timestamp": dt.datetime,
    "timestamptz": dt.datetime,
    "date": dt.date,
    "uuid": UUID,
    "bytea": bytes,
}
"""What PostgreSQL's driver takes for each type that keys are bound as."""


@given(st.sampled_from(sorted(FORMS)), st.text(st.characters(codec=None)))
def test_no_text_makes_a_form_fail(type_: str, written: str) -> None:
    form = postgresql_form(type_)
    assert isinstance(form.read(written), (type(None), VALUES[form.bound]))


@given(st.integers())
def test_whole_numbers_are_those_that_a_column_can_hold(number: int) -> None:
    assert postgresql_form("BIGINT").read(str(number)) == (number if -(2**63) <= number < 2**63 else None)


@given(st.binary())
def test_base64_with_and_without_line_breaks_is_bytes(content: bytes) -> None:
    assert octets(base64.b64encode(content).decode()) == content
    assert octets(base64.encodebytes(content).decode()) == content


@given(st.datetimes())
def test_times_are_read_with_nine_digits(moment: dt.datetime) -> None:
    written = f"{moment.isoformat(' ', 'microseconds')}000"
    assert postgresql_form("TIMESTAMP(6) WITHOUT TIME ZONE").read(written) == moment
    assert postgresql_form("TIMESTAMP WITH TIME ZONE").read(written) == moment.replace(tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "type_, written",
    [
        ("integer", "1_0"),
        ("integer", "１"),
        ("numeric(10,2)", "1e999999999"),
        ("numeric", "."),
        ("numeric", "NaN"),
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


@pytest.mark.parametrize("type_", ["citext", "real", "mood", "json", "", "integer[]"])
def test_types_that_are_not_listed_are_compared_as_text(type_: str) -> None:
    assert postgresql_form(type_).as_text


@pytest.mark.parametrize("type_", ['VARCHAR(64) COLLATE "de_DE"', "character  varying(3)", "CHAR(2)"])
def test_arguments_collations_and_blanks_do_not_hide_a_type(type_: str) -> None:
    assert not postgresql_form(type_).as_text


@pytest.mark.parametrize("written, value", [("1", True), (" T ", True), ("no", False), ("off", False), ("2", None)])
def test_truth_has_many_names(written: str, value: Any) -> None:
    assert state(written) is value
