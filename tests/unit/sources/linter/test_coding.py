"""The two codings of TYP that LINTER's document gives, and the choice between them."""

from __future__ import annotations

import pytest

from eventlog.sources.linter.operations import LIST, TABLE, Action, reading, typ_of
from tests.support.linter import commit, row


@pytest.mark.parametrize("typ, action", [*TABLE.items(), (5, None), (6, None), (0, None), (11, None)])
def test_the_tables_coding(typ: int, action: Action | None) -> None:
    assert reading("table", print)(row(typ=typ)) is action


@pytest.mark.parametrize("typ, action", [*LIST.items(), (6, None), (7, None), (10, None)])
def test_the_lists_coding(typ: int, action: Action | None) -> None:
    assert reading("list", print)(row(typ=typ)) is action


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
    assert [report.rpartition("read as ")[2] for report in reports] == [
        "COMMIT (coding table).",
        "DELETE BLOB (coding list).",
    ]


@pytest.mark.parametrize("action", Action)
def test_what_is_written_is_read(action: Action) -> None:
    coding = "list" if action in (Action.END, Action.DELETE_BLOB) else "table"
    assert reading(coding, print)(row(typ=typ_of(action, coding))) is action  # type: ignore[arg-type]  # one of the two


def test_delete_blob_has_a_code_where_rows_decide() -> None:
    assert typ_of(Action.DELETE_BLOB, "auto") == 4
    assert typ_of(Action.END, "auto") == 5
