"""The two codings of TYP that LINTER's document gives, and the choice between them."""

from __future__ import annotations

import pytest

from eventlog.sources.linter.operations import Action, Coding, reading, typ_of
from tests.support.linter import commit, row

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
