"""Flow charts of the documentation: every one is understood and drawn, nothing overlaps, and hostile text stays text."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from docs.flows import Arrow, Box, Chart, charts, drawn, fence, parsed, spots
from tests.support.shares import met, shares

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "```mermaid\n" in page.read_text()]
CYCLE = """\
flowchart LR
a("begin<br>here") -->|on < & >| b["middle"]
b --> c
c -.->|again| a
a --> c
"""


@st.composite
def any_chart(draw: st.DrawFn) -> Chart:
    names = [f"n{number}" for number in range(draw(st.integers(1, 8)))]
    words = st.text("abc <&>", min_size=1, max_size=20)
    boxes = {
        name: Box(lines=tuple(draw(st.lists(words, min_size=1, max_size=3))), round=draw(st.booleans()))
        for name in names
    }
    one = st.sampled_from(names)
    arrows = st.builds(Arrow, start=one, end=one, label=st.just("") | words, dotted=st.booleans())
    return Chart(down=draw(st.booleans()), boxes=boxes, arrows=tuple(draw(st.lists(arrows, max_size=10))))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_charts_of_a_page_are_drawn(page: Path) -> None:
    for chart in charts(page.read_text()):
        texts = [text.text for text in etree.fromstring(drawn(chart)).iter() if text.tag == "text"]
        assert {line for box in chart.boxes.values() for line in box.lines} <= set(texts)
        assert {arrow.label for arrow in chart.arrows if arrow.label} <= set(texts)


@pytest.mark.parametrize("text", ["graph LR\na --> b", "flowchart LR\na ==> b", "flowchart TD\na[b] --> c"])
def test_what_is_not_understood_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"begins no chart|neither a node nor an arrow"):
        parsed(text)


def test_a_picture_takes_the_colours_of_the_page_and_says_what_it_shows() -> None:
    svg = fence(CYCLE, "mermaid", "flow", {}, None)
    picture = etree.fromstring(svg)
    assert picture.get("stroke") == "currentColor"
    assert "begin here on < & > middle; middle to c" in str(picture.get("aria-label"))
    assert "<style" not in svg  # it would hold for the whole page
    assert len(re.findall("stroke-dasharray", svg)) == 1


@shares(several=0.5)
@given(any_chart())
def test_boxes_never_overlap_and_stand_inside_the_picture(chart: Chart) -> None:
    at = spots(chart)
    met(several=len(at) > 1)
    for one, other in combinations(at.values(), 2):
        wide, high = (one.box.width + other.box.width) / 2, (one.box.height + other.box.height) / 2
        assert abs(one.x - other.x) >= wide or abs(one.y - other.y) >= high
    x, y, width, height = map(float, str(etree.fromstring(drawn(chart)).get("viewBox")).split())
    for spot in at.values():
        assert x <= spot.x - spot.box.width / 2 <= spot.x + spot.box.width / 2 <= x + width
        assert y <= spot.y - spot.box.height / 2 <= spot.y + spot.box.height / 2 <= y + height
