"""SQL type names of many databases, and the kinds of values they mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.sql_types import _NAMES, Category, category
from tests.support.shares import met, shares

WRITTEN = """
STRING: TIME WITH TIME ZONE; TIME(3) WITH TIME ZONE; timetz; varchar; VARCHAR2(64 CHAR); character varying(30)
STRING: text; clob; uuid; interval day to second; ; no_such_type(3); bit(8); long
OCTET: bytea; BLOB; RAW(16); long  raw; LONGRAW; varbinary(max); BYTE; image
INT: integer; INT(11); int(10) unsigned; bigint; SMALLINT NOT NULL; serial8; number(10); NUMBER(*,0); numeric(10, 0)
INT: decimal( 12 ); dec(3,0) unsigned zerofill; tinyint; tinyint(4); tinyint(2) unsigned
STATE: boolean; BOOL; bit; bit(1); tinyint(1)
NUMBER: numeric; NUMBER; NUMBER(*); decimal; number(10,2); numeric(10,-2); float; FLOAT(126); double precision
NUMBER: real; money; binary_double
DATE: date; DATE NOT NULL
TIME: time; time(3); time without time zone
TIMESTAMP: timestamp; timestamp(6); TIMESTAMP(6) WITH TIME ZONE; timestamp (3) with local time zone
TIMESTAMP: timestamp without time zone; datetime; DATETIME YEAR TO FRACTION(5); datetime year to second
TIMESTAMP: datetime2(7); timestamptz
"""
CASES = [
    (Category[name], written)
    for name, _, types in (line.partition(": ") for line in WRITTEN.strip().splitlines())
    for written in types.split("; ")
]


@pytest.mark.parametrize("found, sql_type", CASES)
def test_a_type_has_its_category_however_a_database_writes_it(found: Category, sql_type: str) -> None:
    assert category(sql_type) is found


@given(st.sampled_from(sorted(_NAMES)), st.sampled_from([str.upper, str.title]), st.text(" \t\n", max_size=3))
def test_case_and_blanks_do_not_matter(name: str, spelled: object, blanks: str) -> None:
    assert callable(spelled)
    assert category(f"{blanks}{spelled(name)}{blanks}") is category(name) is _NAMES[name]


PIECES = ["(", ")", "()", "(1)", "(10, 0)", "(*)", ",", "0", " unsigned", " with time zone", " year to day", "\n"]


def joined(parts: tuple[str, list[str]]) -> str:
    """A name with what may stand behind it."""
    name, behind = parts
    return name + "".join(behind)


@shares(known=0.15, unknown=0.2)
@given(
    st.text() | st.tuples(st.sampled_from(sorted(_NAMES)), st.lists(st.sampled_from(PIECES), max_size=2)).map(joined)
)
def test_any_text_has_a_category(text: str) -> None:
    found = category(text)
    met(known=found is not Category.STRING, unknown=found is Category.STRING)
    assert found in Category
