"""What types are called, and how long their values are."""

from __future__ import annotations

import pytest

from eventlog.qlik.typemap import QlikType, qlik_type
from eventlog.sinks.database.types import find_text_limit


@pytest.mark.parametrize(
    "sql_type", ["varchar(10)[]", "vector(1536)", "timetz(3)", "interval(6)", "geometry(4326)", "enum('1')"]
)
def test_what_is_no_length_is_taken_for_none(sql_type: str) -> None:
    assert qlik_type(sql_type) == QlikType("STRING")
    assert find_text_limit(sql_type) is None


@pytest.mark.parametrize(
    "sql_type", ["varchar(10)", "NVARCHAR2(10)", "character varying(10)", "char(10 byte)", "bit(10)"]
)
def test_texts_have_their_length(sql_type: str) -> None:
    assert qlik_type(sql_type) == QlikType("STRING", 10)


def test_an_amount_of_money_has_two_digits_behind_the_point() -> None:
    assert qlik_type("money") == QlikType("NUMERIC", 0, 19, 2)
    assert qlik_type("money(16,4)") == QlikType("NUMERIC", 0, 16, 4)


def test_a_real_number_may_have_single_precision() -> None:
    assert qlik_type("real") == QlikType("REAL4", 7)
    assert qlik_type("double precision") == QlikType("REAL8", 14)
