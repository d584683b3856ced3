"""A picture of a mask: columns, their bits, the bytes they make, and how these are written; by the program's own codecs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from docs.railroad import STYLE
from eventlog.qlik.change_tables.rows import TYPES
from eventlog.qlik.masks import bits_to_bytes, bits_to_hex, places_of

COLUMNS: Final = (*TYPES, "idu", "fname", "lname", "age")
"""The columns of a change table: its header columns come first, and are counted."""

CHANGED: Final = ("fname", "age")
WIDTH: Final = 34
TOP: Final = 150
EXTRA: Final = "rect.set{fill:#1565c0}text.set{fill:#fff}text.small{font-size:11px}"


def picture() -> str:
    """The mask of an update that changed two columns."""
    bits = sum(1 << COLUMNS.index(name) for name in CHANGED)
    width, body = len(COLUMNS) * WIDTH + 240, "".join([*_columns(bits), *_bytes(bits), *_written(bits)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 330" width="{width}" height="330">'
        f"<style>{STYLE}{EXTRA}</style>{body}</svg>\n"
    )


def _columns(bits: int) -> Iterator[str]:
    """A cell for each column, its name above and its place below; those that changed are filled."""
    changed = places_of(bits)
    for place, name in enumerate(COLUMNS):
        x, kind = 10 + place * WIDTH, ' class="set"' if place in changed else ""
        middle = x + WIDTH / 2
        yield f'<rect{kind} x="{x}" y="{TOP}" width="{WIDTH}" height="26"/>'
        yield f'<text{kind} x="{middle:g}" y="{TOP + 18}" text-anchor="middle">{int(place in changed)}</text>'
        yield f'<text class="small" x="{middle:g}" y="{TOP + 42}" text-anchor="middle">{place}</text>'
        yield f'<text transform="translate({middle + 4:g} {TOP - 8}) rotate(-60)">{escape(name)}</text>'
    yield f'<text x="{20 + len(COLUMNS) * WIDTH}" y="{TOP + 18}">bit</text>'
    yield f'<text x="{20 + len(COLUMNS) * WIDTH}" y="{TOP + 42}">place of the column</text>'


def _bytes(bits: int) -> Iterator[str]:
    """A bracket below the eight columns of each byte."""
    for number, byte in enumerate(bits_to_bytes(bits)):
        first, last = 8 * number, min(8 * number + 8, len(COLUMNS))
        left, right = 12 + first * WIDTH, 8 + last * WIDTH
        yield f'<path d="M{left} {TOP + 52}v8H{right}v-8"/>'
        said = f"byte {number} = 0x{byte:02X}"
        yield f'<text x="{(left + right) / 2:g}" y="{TOP + 78}" text-anchor="middle">{said}</text>'


def _written(bits: int) -> Iterator[str]:
    binary = " ".join(f"{byte:02X}" for byte in bits_to_bytes(bits))
    lines: Sequence[tuple[str, str]] = (
        ("binary", f"{binary}   byte 0 first; zeros at the end are left out"),
        ("hex", f"{bits_to_hex(bits)}    the last byte first; zeros at the beginning are left out"),
    )
    for number, (name, said) in enumerate(lines):
        y = TOP + 120 + 26 * number
        yield f'<text x="10" y="{y}">{name}</text><text xml:space="preserve" x="80" y="{y}">{escape(said)}</text>'
