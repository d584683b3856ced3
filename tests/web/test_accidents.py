"""Pictures of the page in five accidents show what it says today, and a browser shows it at every width."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.web.pages import live
from tests.web.accidents import FOLDER, drawn, photograph, pictures, said_by, words
from tests.web.test_banners import ACCIDENTS
from tests.web.test_browser import browser

__all__ = ["browser"]
AGAIN = "the page says something else now: look at it, and make the pictures anew with python -m tests.web.accidents"


@pytest.mark.parametrize("name", ACCIDENTS)
def test_pictures_say_what_the_page_says(name: str) -> None:
    said = words(drawn(ACCIDENTS[name][0]))
    assert "".join(ACCIDENTS[name][1].split()) in "".join(said.split())
    assert {said_by(picture) for picture in pictures(name)} == {said}, AGAIN


def test_there_are_no_other_pictures() -> None:
    known = {picture for name in ACCIDENTS for picture in pictures(name)}
    assert len(known) == 30
    assert set(FOLDER.iterdir()) == known


def test_the_head_of_the_page_does_not_contradict_its_banner() -> None:
    assert "<strong>Failing.</strong> Rows wait for 1 output." in " ".join(live(ACCIDENTS["dead output"][0]).split())
    calm = {name for name, (reading, _) in ACCIDENTS.items() if "Nothing is stuck" in live(reading)}
    assert calm == {"slow receiver"}, "one output that lags holds nobody up"


@pytest.mark.in_turn
@pytest.mark.xdist_group("browser")
def test_a_browser_photographs_an_accident(browser: object, tmp_path: Path) -> None:
    photograph(browser, "dead output", tmp_path)
    assert {picture.name for picture in tmp_path.iterdir()} == {one.name for one in pictures("dead output")}
