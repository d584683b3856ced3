"""Mermaid's flow charts as SVG, drawn when the documentation is built: its pages fetch no program from elsewhere.

Understood is what the pages use: `flowchart LR` or `TD`, then a line for each node or arrow: `a["text"] -->|label| b["text"]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from itertools import chain
from typing import Any, Final

from msgspec import Struct

LETTER: Final = 7.3
"""Width of a letter of the charts' font."""

LINE: Final = 18
PAD: Final = 12
BETWEEN: Final = 26
"""Room between two neighbours of a rank."""

_node = r'(\w+)(?:\["([^"]+)"\]|\("([^"]+)"\))?'
_line = re.compile(rf"{_node}(?:\s*(-->|-\.->)(?:\|([^|]+)\|)?\s*{_node})?")


class Box(Struct, frozen=True, kw_only=True):
    """A node: its lines of text and whether its corners are round."""

    lines: tuple[str, ...]
    round: bool

    @property
    def width(self) -> float:
        return max(len(line) for line in self.lines) * LETTER + 2 * PAD

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + PAD


class Arrow(Struct, frozen=True, kw_only=True):
    """From one node to another, with what is said on the way."""

    start: str
    end: str
    label: str = ""
    dotted: bool = False


class Chart(Struct, frozen=True, kw_only=True):
    """A flow chart; nodes are in the order in which they were named first."""

    down: bool
    boxes: Mapping[str, Box]
    arrows: tuple[Arrow, ...]


class Spot(Struct, frozen=True, kw_only=True):
    """Where a box is: its middle."""

    x: float
    y: float
    box: Box


def fence(source: str, _language: str, _class: str, _options: Any, _md: Any, **_: Any) -> str:
    """What mkdocs puts into the page for a block of Mermaid."""
    return drawn(parsed(source))


def parsed(source: str) -> Chart:
    """Reads a chart; ValueError names the line that is not understood."""
    first, *lines = [line.strip() for line in source.splitlines() if line.strip()]
    if first not in ("flowchart LR", "flowchart TD"):
        raise ValueError(f"{first!r} begins no chart that is drawn here.")
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for line in lines:
        found = _line.fullmatch(line)
        if found is None:
            raise ValueError(f"{line!r} is neither a node nor an arrow.")
        name, square, soft, how, label, other, square2, soft2 = found.groups()
        _name(boxes, name, square, soft)
        if how:
            _name(boxes, other, square2, soft2)
            arrows.append(Arrow(start=name, end=other, label=label or "", dotted=how == "-.->"))
    return Chart(down=first.endswith("TD"), boxes=boxes, arrows=tuple(arrows))


def _name(boxes: dict[str, Box], name: str, square: str | None, soft: str | None) -> None:
    said = square or soft
    if said or name not in boxes:
        boxes[name] = Box(lines=tuple((said or name).split("<br>")), round=soft is not None)


def ranks(chart: Chart) -> dict[str, int]:
    """How far each node is from a beginning; arrows to a node that was named earlier lead back and do not count."""
    order = {name: place for place, name in enumerate(chart.boxes)}
    found = dict.fromkeys(chart.boxes, 0)
    for name in chart.boxes:
        for arrow in chart.arrows:
            if arrow.end == name and order[arrow.start] < order[name]:
                found[name] = max(found[name], found[arrow.start] + 1)
    return found


def spots(chart: Chart) -> dict[str, Spot]:
    """Where the boxes are: ranks one after the other, the boxes of a rank beside each other about one middle."""
    levels: dict[int, list[str]] = {}
    for name, rank in ranks(chart).items():
        levels.setdefault(rank, []).append(name)
    found: dict[str, Spot] = {}
    along = 0.0
    for rank in sorted(levels):
        boxes = [chart.boxes[name] for name in levels[rank]]
        depth = max(box.height if chart.down else box.width for box in boxes)
        along += depth / 2 + (_room(chart, levels[rank]) if rank else 0.0)
        sizes = [box.width if chart.down else box.height for box in boxes]
        across = -(sum(sizes) + BETWEEN * (len(sizes) - 1)) / 2
        for name, box, size in zip(levels[rank], boxes, sizes, strict=True):
            middle = across + size / 2
            found[name] = Spot(x=middle if chart.down else along, y=along if chart.down else middle, box=box)
            across += size + BETWEEN
        along += depth / 2
    return found


def _room(chart: Chart, names: list[str]) -> float:
    """Room before a rank: as much as the labels of the arrows into it take."""
    far = ranks(chart)
    into = [arrow for arrow in chart.arrows if arrow.end in names and far[arrow.start] + 1 == far[arrow.end]]
    longest = max((len(arrow.label) for arrow in into), default=0)
    return 2 * LINE + (LINE if longest else 0) if chart.down else max(44.0, longest * LETTER + 24)


def drawn(chart: Chart) -> str:
    """The chart as SVG, in the colours of the text round it."""
    at = spots(chart)
    far = ranks(chart)
    back = [arrow for arrow in chart.arrows if far[arrow.end] != far[arrow.start] + 1]
    left = min(spot.x - spot.box.width / 2 for spot in at.values()) - 4
    right = max(spot.x + spot.box.width / 2 for spot in at.values()) + 4
    top = min(spot.y - spot.box.height / 2 for spot in at.values()) - 4
    bottom = max(spot.y + spot.box.height / 2 for spot in at.values()) + 4
    parts = [_forth(arrow, at, down=chart.down) for arrow in chart.arrows if arrow not in back]
    for lane, arrow in enumerate(back, 1):
        parts.append(_return(arrow, at, right if chart.down else bottom, lane, down=chart.down))
    if chart.down:
        right += sum(2 * PAD + len(arrow.label) * LETTER for arrow in back)
    else:
        bottom += len(back) * (LINE + PAD) + PAD
    said = "; ".join(f"{_plain(chart, a.start)} {a.label or 'to'} {_plain(chart, a.end)}" for a in chart.arrows)
    inner = "".join(chain(parts, map(_box, at.values())))
    return (
        f'<svg class="flow" role="img" aria-label="{escape(said)}" viewBox="{left:g} {top:g} {right - left:g} {bottom - top:g}"'
        f' style="max-width:{right - left:g}px;width:100%;color:inherit" fill="none" stroke="currentColor">{inner}</svg>'
    )


def _plain(chart: Chart, name: str) -> str:
    return " ".join(chart.boxes[name].lines)


def _box(spot: Spot) -> str:
    box = spot.box
    svg = f'<rect x="{spot.x - box.width / 2:g}" y="{spot.y - box.height / 2:g}" width="{box.width:g}" height="{box.height:g}"'
    svg += f' rx="{box.height / 2 if box.round else 3:g}"/>'
    first = spot.y - (len(box.lines) - 1) * LINE / 2 + 4.5
    return svg + "".join(_text(line, spot.x, first + LINE * place) for place, line in enumerate(box.lines))


def _text(said: str, x: float, y: float, anchor: str = "middle") -> str:
    style = "font:12px monospace;fill:currentColor;stroke:none"
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" style="{style}">{escape(said)}</text>'


def _path(points: str, arrow: Arrow, head: str) -> str:
    dashes = ' stroke-dasharray="4 4"' if arrow.dotted else ""
    return f'<path d="{points}"{dashes}/><path d="{head}" fill="currentColor" stroke="none"/>'


def _forth(arrow: Arrow, at: Mapping[str, Spot], *, down: bool) -> str:
    """From a box to one further on."""
    start, end = at[arrow.start], at[arrow.end]
    if down:
        x1, y1, x2, y2 = start.x, start.y + start.box.height / 2, end.x, end.y - end.box.height / 2
        bend = f"C{x1:g} {(y1 + y2) / 2:g} {x2:g} {(y1 + y2) / 2:g} {x2:g} {y2 - 7:g}"
        label = _text(arrow.label, (x1 + x2) / 2 + 8, (y1 + y2) / 2 + 3, "start")
        head = f"M{x2:g} {y2:g}l-4 -8h8z"
    else:
        x1, y1, x2, y2 = start.x + start.box.width / 2, start.y, end.x - end.box.width / 2, end.y
        bend = f"C{(x1 + x2) / 2:g} {y1:g} {(x1 + x2) / 2:g} {y2:g} {x2 - 7:g} {y2:g}"
        label = _text(arrow.label, (x1 + x2) / 2 - 3, (y1 + y2) / 2 - 5)
        head = f"M{x2:g} {y2:g}l-8 -4v8z"
    return _path(f"M{x1:g} {y1:g}{bend}", arrow, head) + (label if arrow.label else "")


def _return(arrow: Arrow, at: Mapping[str, Spot], edge: float, lane: int, *, down: bool) -> str:
    """From a box to one that is not in the next rank, along the edge of the chart."""
    start, end = at[arrow.start], at[arrow.end]
    if down:
        lane_x = edge + lane * PAD
        x1, x2 = start.x + start.box.width / 2, end.x + end.box.width / 2
        way = f"M{x1:g} {start.y:g}H{lane_x:g}V{end.y:g}H{x2 + 7:g}"
        label = _text(arrow.label, lane_x + 5, (start.y + end.y) / 2, "start")
        return _path(way, arrow, f"M{x2:g} {end.y:g}l8 -4v8z") + label
    lane_y, shift = edge + lane * (LINE + PAD), 6.0 * lane
    y1, y2 = start.y + start.box.height / 2, end.y + end.box.height / 2
    way = f"M{start.x - shift:g} {y1:g}V{lane_y:g}H{end.x + shift:g}V{y2 + 7:g}"
    label = _text(arrow.label, (start.x + end.x) / 2, lane_y - 5)
    return _path(way, arrow, f"M{end.x + shift:g} {y2:g}l-4 8h8z") + label


def charts(markdown: str) -> Iterator[Chart]:
    """The charts of a page."""
    for source in re.findall(r"^```mermaid\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL):
        yield parsed(source)
