"""Values that Python lacks, and objects of which no value can be written."""

from __future__ import annotations

import pytest

from eventlog.core.errors import ExpressionError
from eventlog.core.limits import ColumnLimits
from eventlog.core.model import Change, Edit, Op, Refusal, RowId
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import encode
from eventlog.core.sql_types import Category
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.limits import reading_within
from eventlog.qlik.messages.write import MessageFormat

CATALOG = Catalog(
    [Table(name="t", columns=(Column(name="k", type="integer", key=1), Column(name="n", type="integer")))]
)
NEW = Change(
    row=RowId(None, "t", "k=1"),
    op=Op.MODIFY,
    created=True,
    whole=True,
    edits=(Edit(column="n", new="no number"),),
    positions=((1,),),
)


def read_infinity(_sql_type: str, _kind: Category, text: str) -> str | None:
    return text if text == "infinity" else None


def test_a_target_reads_what_python_has_no_value_for() -> None:
    read = reading_within("timestamp", ColumnLimits(beyond=read_infinity))
    assert read("infinity") == "infinity"
    assert read("2026-01-02 03:04:05") == reading_within("timestamp", None)("2026-01-02 03:04:05")
    with pytest.raises(ExpressionError):
        read("no time")


def test_a_number_of_too_many_digits_for_an_integer_may_be_nan_where_that_is_exact() -> None:
    read = reading_within("numeric(30,0)", ColumnLimits(exact_nan=True))
    assert str(read("NaN")) == "NaN"
    assert read("7") == 7
    with pytest.raises(ExpressionError):
        reading_within("numeric(30,0)", ColumnLimits())("none")


def test_a_new_object_of_which_no_value_can_be_written_appears_as_its_key() -> None:
    for form in (ChangeTableFormat(settings=ChangeTableSettings()), MessageFormat()):
        written = list(encode(form, [NEW], CATALOG))
        assert [one.partial for one in written if isinstance(one, Refusal)] == [True]
        assert len([one for one in written if not isinstance(one, Refusal)]) == 1
