"""Operations of queue rows: both codings of TYP, both readings of the lengths, every border, every contradiction."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.sources.linter.operations import Action, Coding, Operation, operation, reading, typ_of
from eventlog.sources.linter.rows import DATA_BYTES, QueueRow
from eventlog_streams_tools.linter.emulator import Lengths, spread
from tests.support.linter import NEW, OLD, commit, row


def continued(first: bytes, second: bytes, lengths: Lengths, **other: object) -> list[QueueRow]:
    pieces = spread(first, second, lengths)
    return [
        row(extdata=number, len1=one, len2=two, data=data, **other) for number, (one, two, data) in enumerate(pieces)
    ]


def fault(rows: list[QueueRow], *, pad: bool = False) -> str:
    found = operation(rows, pad=pad)
    assert found.fault is not None
    assert found.first == b"".join([one.data for one in sorted(rows, key=lambda one: one.extdata)])  # the raw is kept
    return found.fault


FIRST, SECOND = bytes(range(1, 251)) * 16, bytes(reversed(range(1, 251))) * 16


@pytest.mark.parametrize("lengths", ["rows", "totals"])
def test_the_update_of_the_specification_with_images_of_4000_bytes(lengths: Lengths) -> None:
    rows = continued(FIRST, SECOND, lengths)
    expected = {"rows": [(3400, 0), (600, 2800), (0, 1200)], "totals": [(4000, 4000)] * 3}
    assert [(one.len1, one.len2) for one in rows] == expected[lengths]
    for order in permutations(rows):
        assert operation(order, pad=False) == Operation(rows[0], FIRST, SECOND)


@given(
    st.sampled_from([0, 1, 3399, 3400, 3401, 4096]),
    st.sampled_from([0, 1, 3399, 3400, 4096]),
    st.sampled_from(["rows", "totals"]),
)
def test_parts_of_any_size_come_back(first: int, second: int, lengths: Lengths) -> None:
    one, two = (FIRST * 2)[:first], (SECOND * 2)[:second]
    found = operation(continued(one, two, lengths), pad=False)
    assert (found.first, found.second, found.fault) == (one, two, None)


ROWS, TOTALS = continued(FIRST, SECOND, "rows"), continued(FIRST, SECOND, "totals")


@pytest.mark.parametrize(
    "rows, said",
    [
        (ROWS[1:], "The row with EXTDATA 0 is missing."),
        ([ROWS[0], ROWS[2]], "The row with EXTDATA 1 is missing."),
        ([row(extdata=-1)], "The row with EXTDATA 0 is missing."),
        (TOTALS[:2], "LEN1 + LEN2 is 8000, and 2 rows can hold 6800"),
        ([*TOTALS[:2], row(extdata=2, len1=4000, len2=4000, data=b"")], "DATA is truncated: it has 0 bytes"),
        ([row(len1=-1, len2=5)], "LEN1 or LEN2 is negative."),
        ([row(len1=5, len2=-1)], "LEN1 or LEN2 is negative."),
        ([row(len1=3401, len2=0, data=bytes(DATA_BYTES))], "1 row can hold 3400 bytes at most"),
        ([row(len1=2**31 - 1, len2=0, data=bytes(DATA_BYTES))], "1 row can hold 3400 bytes at most"),
    ],
)
def test_what_is_missing_or_cannot_be_is_said(rows: list[QueueRow], said: str) -> None:
    assert said in fault(rows)


def test_an_equal_duplicate_is_dropped_and_a_different_one_an_error() -> None:
    rows = continued(FIRST, SECOND, "rows")
    assert operation([*rows, rows[1]], pad=False).second == SECOND
    other = row(extdata=1, len1=600, len2=2800, data=b"x" * 3400)
    assert fault([*rows, other]) == "Two rows with EXTDATA 1 say different things."


@pytest.mark.parametrize("column", ["typ", "rowid_src", "tabnum_src"])
def test_rows_must_agree_on_what_they_are(column: str) -> None:
    first, second, third = continued(FIRST, SECOND, "rows")
    changed = row(**{"extdata": 1, "len1": second.len1, "len2": second.len2, "data": second.data, column: 99})
    assert "of the row with EXTDATA 1 differ from the first" in fault([first, changed, third])


def test_totals_must_agree() -> None:
    first, second, third = continued(FIRST, SECOND, "totals")
    changed = row(extdata=1, len1=4000, len2=3999, data=second.data)
    assert "differ between the operation's rows" in fault([first, changed, third])


def test_truncated_data_is_an_error_unless_zeros_may_be_put_back() -> None:
    cut = row(data=(OLD + NEW).removesuffix(b"\0"))
    assert "DATA is truncated: it has 57 bytes and the lengths say 58." in fault([cut])
    assert operation([cut], pad=True).second == NEW
    assert "truncated: it has 0 bytes" in fault([row(data=b"")])


def test_rows_for_several_destinations_are_one_operation() -> None:
    rows = continued(FIRST, SECOND, "rows") + continued(FIRST, SECOND, "rows", dst_server="OTHER")
    assert operation(rows, pad=False).second == SECOND
    assert operation(rows[1:], pad=False) == Operation(rows[3], FIRST, SECOND)  # one of them is whole
    assert fault([*rows[1:3], *rows[4:]]) == "The row with EXTDATA 0 is missing."


CODINGS: dict[Coding, str] = {
    "table": "DELETE, INSERT, UPDATE, COMMIT, -, -, CREATE BLOB, INSERT BLOB, CLEAR BLOB, ROLLBACK, -",
    "list": "DELETE, INSERT, UPDATE, DELETE BLOB, COMMIT or ROLLBACK, -, -, -, -, -, -",
}


@pytest.mark.parametrize("coding", CODINGS)
def test_each_coding_has_its_numbers(coding: Coding) -> None:
    read = reading(coding, print)
    found = [read(row(typ=typ)) for typ in range(1, 12)]
    assert ", ".join(action or "-" for action in found) == CODINGS[coding]
    assert [typ_of(action, coding) for action in found if action] == [typ for typ, one in enumerate(found, 1) if one]


@pytest.mark.parametrize(
    "typ, len1, blobatr, action",
    [
        (4, 0, 0, Action.COMMIT),
        (4, 29, 0, Action.DELETE_BLOB),
        (4, 0, 5, Action.DELETE_BLOB),
        (5, 0, 0, Action.END),
        (7, 29, 5, Action.CREATE_BLOB),
        (8, 29, 5, Action.INSERT_BLOB),
        (9, 29, 5, Action.CLEAR_BLOB),
        (10, 0, 0, Action.ROLLBACK),
        (1, 29, 0, Action.DELETE),
        (6, 0, 0, None),
    ],
)
def test_auto_decides_row_by_row(typ: int, len1: int, blobatr: int, action: Action | None) -> None:
    reports: list[str] = []
    chosen = reading("auto", reports.append)(commit(typ=typ, len1=len1, blobatr=blobatr))
    assert chosen is action
    assert len(reports) == (typ in (4, 5))


def test_auto_reports_each_choice_once() -> None:
    reports: list[str] = []
    choose = reading("auto", reports.append)
    for blobatr in (0, 0, 5, 5):
        choose(commit(blobatr=blobatr))
    said = [report.rpartition("read as ")[2] for report in reports]
    assert said == ["COMMIT (coding table).", "DELETE BLOB (coding list)."]


def test_where_rows_decide_a_blob_is_deleted_and_a_transaction_ended_as_the_list_has_it() -> None:
    assert (typ_of(Action.DELETE_BLOB, "auto"), typ_of(Action.END, "auto")) == (4, 5)
