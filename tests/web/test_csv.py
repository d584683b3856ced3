"""Lists as CSV: every row of the filter, or the chosen ones, as whoever looks may see them; and nothing that a spreadsheet runs."""

from __future__ import annotations

import csv
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.care import listing as module
from eventlog.care.csv_export import COLUMNS, FORMULA, write_csv
from eventlog.web.settings import WebConfig
from tests.conformance.event_logs import installed
from tests.web.states import ROW
from tests.web.visiting import Visit, opened

TOKEN = "the-token-that-nobody-guesses"


def read(body: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(body.decode(), newline="")))


@given(text=st.text(max_size=30))
def test_a_value_comes_back_and_is_no_formula(text: str) -> None:
    [row] = read(b"".join(write_csv([[replace(ROW, new_value=text, old_value=None)]])))
    seen = text.encode("utf-8", "replace").decode()
    assert row["old_value"] == ""
    assert row["new_value"] in (seen, f"'{seen}")
    if row["new_value"].startswith(FORMULA):
        float(row["new_value"])


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "@SUM(A1)", "-2+3", "\tx", "-1x"])
def test_a_formula_is_a_text(text: str) -> None:
    [row] = read(b"".join(write_csv([[replace(ROW, new_value=text)]])))
    assert row["new_value"] == f"'{text}"


def test_all_rows_of_a_list_come_however_many_pages_they_are(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.0)
    log = installed(sqlite)
    log.write_all(range(1, 1201))
    log.write(1201, status="E", new_value="x" * 1000)
    with opened(sqlite) as page:
        visit = Visit(page)
        answer = visit.get("/rows.csv")
        assert answer.headers["content-disposition"] == 'attachment; filename="rows.csv"'
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        rows = read(answer.body.encode())
        assert [int(row["record_id"]) for row in rows] == [*range(1201, 0, -1)]
        assert list(rows[0]) == [*COLUMNS]
        assert rows[0]["new_value"] == "x" * 1000
        assert [row["record_id"] for row in read(visit.get("/rows.csv?status=E").body.encode())] == ["1201"]
        chosen = read(visit.get("/rows.csv?id=3&id=9&id=nothing").body.encode())
        assert [row["record_id"] for row in chosen] == ["3", "9"]


def test_nobody_else_gets_it(sqlite: Engine) -> None:
    installed(sqlite)
    with opened(sqlite, WebConfig(token=TOKEN)) as page:
        for path in ("/rows.csv", "/state", "/find?q=1"):
            assert Visit(page).get(path).status == 401
            assert Visit(page, Authorization=f"Bearer {TOKEN}").get(path).status in (200, 303)
