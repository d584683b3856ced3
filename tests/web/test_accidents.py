"""Pictures of the pages in five accidents show what they say today, and a browser shows each at every width."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.web.pages import live
from tests.web.accidents import FOLDER, all_pages, photograph, pictures, said_by, words
from tests.web.test_banners import ACCIDENTS
from tests.web.test_browser import browser

__all__ = ["browser"]
AGAIN = "the page says something else now: look at it, and make the pictures anew with python -m tests.web.accidents"
PAGES = all_pages()


@pytest.mark.parametrize("name", PAGES)
def test_pictures_say_what_the_page_says(name: str) -> None:
    assert {said_by(picture) for picture in pictures(name)} == {words(PAGES[name])}, AGAIN


@pytest.mark.parametrize("name", ACCIDENTS)
def test_the_overview_has_the_banner_of_the_accident(name: str) -> None:
    assert "".join(ACCIDENTS[name][1].split()) in "".join(words(PAGES[name.replace(" ", "-")]).split())


def test_there_are_no_other_pictures() -> None:
    known = {picture for name in PAGES for picture in pictures(name)}
    assert len(known) == 30 + 19
    assert set(FOLDER.iterdir()) == known


def test_the_head_of_the_page_does_not_contradict_its_banner() -> None:
    heads = {name: " ".join(live(reading).split()) for name, (reading, _) in ACCIDENTS.items()}
    assert "<strong>Failing.</strong> Rows wait for 1 output." in heads["dead output"]
    assert [name for name, head in heads.items() if "Nothing is stuck" in head] == []


def test_no_output_is_called_up_to_date_while_rows_are_stuck() -> None:
    overview = words(PAGES["publisher-gone"])
    assert overview.startswith("event_log Overview Rows Errors Tables Overview Stuck.")
    assert "up to date" not in overview


def test_an_output_has_one_name_on_a_page() -> None:
    assert "files /srv/out" not in words(PAGES["slow-receiver"])
    assert "300 rows are kept for files out." in words(PAGES["slow-receiver"])


def test_the_page_of_a_dead_output_counts_the_rows_that_wait_for_it() -> None:
    said = words(PAGES["output-dead"])
    assert "3 rows wait for it" in said
    assert "Rows behind 3 · from row 7 Lag 3 h" in said


def test_the_page_of_a_table_says_that_the_publisher_may_not_read_it() -> None:
    assert "Suspended: the table usr , since row 7" in words(PAGES["table"])


@pytest.mark.in_turn
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("name", ["dead-output", "rows"])
def test_a_browser_photographs_a_page(browser: object, tmp_path: Path, name: str) -> None:
    photograph(browser, name, tmp_path)
    assert {picture.name for picture in tmp_path.iterdir()} == {one.name for one in pictures(name)}
