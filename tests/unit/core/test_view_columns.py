"""View column prefixes: what a name says, and the form of it that documents show."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.view_columns import read_column_name
from tests.support.shares import met, shares

names = st.from_regex(r"[a-z][a-z0-9]{0,6}(_[a-z0-9]{1,4})?", fullmatch=True).filter(
    lambda name: name[:3] not in ("pk_", "fk_", "sv_", "mv_")
)
groups = st.none() | st.integers(0, 99)
pieces = st.sampled_from(["pk_", "PK_", "fk_", "sv_", "mv_", "Mv_", "7_", "_", "fk__idu__", "idu", "é"])


@pytest.mark.parametrize(
    "native, mapped, meaning",
    [
        ("pk_idu", "pk_idu", {"column": "idu", "key": True}),
        ("pk__idu__idu", "pk_idu", {"column": "idu", "key": True}),
        ("pk_sv_idu", "pk_idu", {"column": "idu", "key": True}),
        ("pk_2_idu", "pk_idu", {"column": "idu", "key": True}),
        ("pk_sv_0__idu__emp_no", "pk_emp_no", {"column": "emp_no", "key": True}),
        ("PK_EMPNO", "pk_EMPNO", {"column": "EMPNO", "key": True}),
        ("sv_fname", "fname", {"column": "fname"}),
        ("fname", "fname", {"column": "fname"}),
        ("mv_phoneno", "phoneno", {"column": "phoneno", "multiple": True}),
        ("MV_PHONENO", "PHONENO", {"column": "PHONENO", "multiple": True}),
        ("fk__idu__manager", "fk_manager", {"column": "manager", "refers_to": "idu"}),
        ("fk_sv__idu__manager", "fk_manager", {"column": "manager", "refers_to": "idu"}),
        ("fk_mv__idg__mbr_of", "fk_mbr_of", {"column": "mbr_of", "refers_to": "idg", "multiple": True}),
        ("FK_MV_1__IDG__X", "fk_X", {"column": "X", "refers_to": "IDG", "multiple": True}),
        ("fk__id_g__mbr_of", "fk_mbr_of", {"column": "mbr_of", "refers_to": "id_g"}),
        ("fk_manager", "fk_manager", {"column": "fk_manager"}),
        ("pk_", "pk_", {"column": "pk_"}),
        ("mv_", "mv_", {"column": "mv_"}),
        ("pkidu", "pkidu", {"column": "pkidu"}),
        ("", "", {"column": ""}),
    ],
)
def test_a_column_name_says_what_it_is(native: str, mapped: str, meaning: dict[str, Any]) -> None:
    read = read_column_name(native)
    facts = ("column", "key", "multiple", "refers_to")
    expected = {"key": False, "multiple": False, "refers_to": None} | meaning
    assert {fact: getattr(read, fact) for fact in facts} == expected
    assert read.mapped == mapped


@given(st.sampled_from(["", "sv_", "mv_"]), groups, names, names)
def test_every_foreign_key_of_the_grammar_is_read(values: str, group: int | None, referred: str, column: str) -> None:
    read = read_column_name(f"fk_{values}{'' if group is None else f'{group}_'}_{referred}__{column}")
    assert (read.column, read.refers_to) == (column, referred)
    assert (read.multiple, read.key) == (values == "mv_", False)


@shares(plain=0.2, prefixed=0.2, reference=0.005)
@given(st.text() | st.lists(pieces, max_size=6).map("".join))
def test_any_name_is_read(native: str) -> None:
    read = read_column_name(native)
    met(plain=read.column == native, prefixed=read.column != native, reference=read.refers_to)
    assert native.endswith(read.column)
