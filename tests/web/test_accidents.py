"""The pages in five accidents: what they say together, and that no screen cuts any of it off."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from eventlog.admin.listing import Cursor, Filters, Listing
from eventlog.web.acts import RowsAct
from eventlog.web.pages import (
    document_page,
    live,
    output_page,
    overview_page,
    row_page,
    rows_page,
    rows_question,
    table_page,
    tables_page,
)
from eventlog.web.reading import RANGES
from tests.web.test_banners import ACCIDENTS, DEAD, SLOW
from tests.web.test_browser import SIDEWAYS, WIDTHS, browser
from tests.web.test_drawn import LOOK, ROW, explained, triggers
from tests.web.test_html import Reader

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["browser"]
HELD: Final = replace(
    ROW, record_id=9, reason="held", note="held since 2027-01-14 17:00:00 UTC by ann: their database moves."
)
DENIED: Final = replace(ROW, reason="no right", note="permission denied for table usr")


def pages() -> dict[str, str]:
    """Every page in the accidents that show there."""
    behind = replace(
        ROW, record_id=12, reason="held", note="row 9 of the same object comes first.", column_name="lname"
    )
    refused = replace(ROW, record_id=8, status="E", reason="refused", table_key="idu=4", note="no such department")
    states = triggers({"usr_delete": "CURRENT", "usr_insert": "CURRENT", "usr_update": "OUTDATED"})
    unread = ACCIDENTS["no right"][0]
    rows = Listing(rows=(behind, HELD, refused, ROW), further=Cursor(before=6))
    held = RowsAct(action="release", filters=Filters(letters="N", reason="held"))
    return {name: overview_page(reading, LOOK) for name, (reading, _) in ACCIDENTS.items()} | {
        "output dead": output_page(ACCIDENTS["dead output"][0], DEAD, LOOK, RANGES[0]),
        "output slow": output_page(ACCIDENTS["slow receiver"][0], SLOW, LOOK, RANGES[0]),
        "rows": rows_page(rows, Filters(), LOOK, first=True),
        "row held": row_page(HELD, explained(HELD, 2), LOOK),
        "row without right": row_page(DENIED, explained(DENIED, 2, None), LOOK),
        "document": document_page(9, explained(HELD, 2), LOOK),
        "tables": tables_page(replace(unread, triggers=states), LOOK),
        "table": table_page("usr", states, (DENIED, ROW), LOOK, unread=unread.unread["usr"]),
        "question": rows_question(held, range(9, 2009), LOOK),
    }


PAGES: Final = pages()


def words(name: str) -> str:
    return " ".join(Reader(PAGES[name].replace("<", " <")).text.split())


@pytest.mark.parametrize(
    "name, said, unsaid",
    [
        ("dead output", "Failing. Rows wait for 1 output.", "Nothing is stuck"),
        ("publisher gone", "Overview Stuck.", "up to date"),
        ("slow receiver", "300 rows are kept for files out.", "files /srv/out"),
        ("output dead", "3 rows wait for it", "Up to date"),
        ("output dead", "Rows behind 3 · from row 7 Lag 3 h", "Nothing is stuck"),
        ("table", "Suspended: the table usr , since row 7", "Nothing is stuck"),
    ],
)
def test_no_part_of_a_page_contradicts_its_banner(name: str, said: str, unsaid: str) -> None:
    assert said in words(name)
    assert unsaid not in words(name)


@pytest.mark.parametrize("name", ACCIDENTS)
def test_no_head_says_that_all_is_well(name: str) -> None:
    assert "Nothing is stuck" not in live(ACCIDENTS[name][0])


@pytest.mark.in_turn
@pytest.mark.xdist_group("browser")
def test_no_screen_cuts_a_page_off_in_an_accident(browser: Browser) -> None:
    style = files("eventlog.web").joinpath("static", "style.css").read_text(encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    for name, drawn in PAGES.items():
        page.set_content(drawn.replace('<link rel="stylesheet" href="/s.css">', f"<style>{style}</style>"))
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 740})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            assert page.evaluate(SIDEWAYS) == 0, (name, width)
    context.close()
