"""Grammars as railroad diagrams: a small notation of values in, SVG out. What can be read along the rails is valid."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from msgspec import Struct

LETTER: Final = 7.8
"""Width of a letter of the diagrams' font."""

ROW: Final = 36
BOX: Final = 26
GAP: Final = 16

STYLE: Final = (
    "text{font:13px monospace;fill:#1c2024}path{fill:none;stroke:#555d66;stroke-width:1.5}"
    "rect{fill:#fff;stroke:#1565c0;stroke-width:1.5}rect.name{fill:#e8f0fa}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e8ea}path{stroke:#a9b1ba}rect{fill:#1d2125;stroke:#6cb2ff}"
    "rect.name{fill:#22303f}}"
)


class Word(Struct, frozen=True):
    """What is written as it stands; `name` says that it is another diagram."""

    text: str
    name: bool = False


class Line(Struct, frozen=True):
    """One after the other."""

    parts: tuple[Part, ...]


class Either(Struct, frozen=True):
    """One of several; None is nothing at all."""

    parts: tuple[Part | None, ...]


class Again(Struct, frozen=True):
    """Once or more often, with something in between."""

    part: Part
    between: Part | None = None


Part = Word | Line | Either | Again


class Drawn(Struct, frozen=True):
    """A piece of SVG that is entered on its left at height 0 and left on its right; `up` and `down` are its extent."""

    width: float
    up: float
    down: float
    svg: str


def diagram(part: Part) -> str:
    """A whole picture."""
    drawn = _draw(part)
    width, height = drawn.width + 4 * GAP, drawn.up + drawn.down + 12
    rails = f"M8 0v-6m0 6v6m0-6h{2 * GAP - 8}" + f"m{drawn.width} 0h{2 * GAP - 8}m0-6v12"
    inner = f'<path d="{rails}"/><g transform="translate({2 * GAP} 0)">{drawn.svg}</g>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">'
        f'<style>{STYLE}</style><g transform="translate(0 {drawn.up + 6:g})">{inner}</g></svg>\n'
    )


def _draw(part: Part | None) -> Drawn:
    if part is None:
        return Drawn(0.0, 6.0, 6.0, "")
    if isinstance(part, Word):
        return _word(part)
    if isinstance(part, Line):
        return _line([_draw(one) for one in part.parts])
    if isinstance(part, Either):
        return _either([_draw(one) for one in part.parts])
    return _again(_draw(part.part), _draw(part.between))


def _word(word: Word) -> Drawn:
    width = len(word.text) * LETTER + 20
    kind = ' class="name"' if word.name else f' rx="{BOX / 2:g}"'
    svg = f'<rect{kind} y="{-BOX / 2:g}" width="{width:g}" height="{BOX}"/>'
    svg += f'<text x="{width / 2:g}" y="5" text-anchor="middle">{escape(word.text)}</text>'
    return Drawn(width, BOX / 2, BOX / 2, svg)


def _line(parts: list[Drawn]) -> Drawn:
    x, svg = 0.0, ""
    for place, part in enumerate(parts):
        if place:
            svg += f'<path d="M{x:g} 0h{GAP}"/>'
            x += GAP
        svg += f'<g transform="translate({x:g} 0)">{part.svg}</g>'
        x += part.width
    return Drawn(x, max(part.up for part in parts), max(part.down for part in parts), svg)


def _either(parts: list[Drawn]) -> Drawn:
    widest = max(part.width for part in parts)
    width, svg, y = widest + 4 * GAP, "", 0.0
    for place, part in enumerate(parts):
        y += part.up + parts[place - 1].down + 10 if place else 0.0
        svg += "".join(_branch(part, y, widest))
    return Drawn(width, parts[0].up, y + parts[-1].down, svg)


def _branch(part: Drawn, y: float, widest: float) -> Iterator[str]:
    """One of several ways, from the rail at height 0 and back to it."""
    rest = 2 * GAP + widest - part.width
    bend = f"c{GAP} 0 0 {y:g} {GAP} {y:g}h{GAP}" if y else f"h{2 * GAP}"
    back = f"h{rest - GAP:g}c{GAP} 0 0 {-y:g} {GAP} {-y:g}" if y else f"h{rest:g}"
    yield f'<path d="M0 0{bend}m{part.width:g} 0{back}"/>'
    yield f'<g transform="translate({2 * GAP} {y:g})">{part.svg}</g>'


def _again(part: Drawn, between: Drawn) -> Drawn:
    inner = max(part.width, between.width)
    width, y = inner + 2 * GAP, part.down + between.up + 10
    svg = f'<path d="M0 0h{GAP}m{part.width:g} 0h{width - GAP - part.width:g}"/>'
    svg += f'<g transform="translate({GAP} 0)">{part.svg}</g>'
    svg += f'<path d="M{width - GAP:g} 0c{GAP} 0 {GAP} {y:g} 0 {y:g}h{between.width - inner:g}"/>'
    svg += f'<path d="M{GAP:g} 0c{-GAP} 0 {-GAP} {y:g} 0 {y:g}"/>'
    svg += f'<g transform="translate({GAP} {y:g})">{between.svg}</g>'
    return Drawn(width, part.up, y + between.down, svg)
