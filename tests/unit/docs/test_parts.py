"""The numbered picture of the status page: the list beside it says what the picture numbers, and the page has it."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest
from lxml import html
from msgspec.structs import replace

from eventlog.web.navigation import page_state
from eventlog.web.pages import draw_overview
from tests.support.levels import ROOT
from tests.web.states import LOOK, STATES


@pytest.fixture(scope="module")
def parts() -> dict[str, str]:
    spec = spec_from_file_location("pictures_of_docs", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, str] = module.PARTS
    return found


def test_the_page_beside_the_picture_says_what_it_numbers(parts: dict[str, str]) -> None:
    page = (ROOT / "docs" / "how-to" / "status-page.md").read_text(encoding="utf-8")
    _, _, behind = page.partition("page-parts.png)\n\n")
    assert re.findall(r"^\d\. (.*)$", behind.partition("\n\n")[0], re.MULTILINE) == [*parts.values()]


def test_the_page_has_what_the_picture_numbers(parts: dict[str, str]) -> None:
    reading = STATES["lagging"]
    drawn = html.fromstring(draw_overview(reading, replace(LOOK, state=page_state(reading))))
    for selector in parts:
        kind, name = selector[0], selector[1:]
        attribute = "id" if kind == "#" else "class"
        assert [one for one in drawn.iter() if name in (one.get(attribute) or "").split()], selector
