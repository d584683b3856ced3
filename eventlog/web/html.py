"""HTML as values: texts are escaped because they are texts, and only what was built here counts as markup. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final
from urllib.parse import quote, urlencode

VOID: Final = frozenset({"br", "input", "link", "meta"})
"""Elements that have no end."""

_visible = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"} | {0x7F: "\u2421"}


class Markup(str):
    """Text that is HTML already; every other text is escaped where it meets one."""

    __slots__ = ()


Content = str | int | float | None | Iterable["Content"]
Attribute = str | int | float | bool | None


def element(tag: str, *children: Content, **attributes: Attribute) -> Markup:
    """An element; `class_` is its class, `aria_label` its aria-label, and what is None or False is left out."""
    begin = f"<{tag}{''.join(_attribute(name, value) for name, value in attributes.items())}>"
    return Markup(begin) if tag in VOID else Markup(f"{begin}{markup(children)}</{tag}>")


def markup(content: Content) -> Markup:
    """What may stand between tags: markup as it is, text escaped, everything else one after the other."""
    if isinstance(content, Markup):
        return content
    if content is None:
        return Markup("")
    if isinstance(content, str | int | float):
        return Markup(escape(_shown(str(content))))
    return Markup("".join(markup(part) for part in content))


def value(text: object) -> Markup:
    """A text of the database, which cannot turn the writing direction of what stands around it; NULL is said as such."""
    return element("i", "NULL", class_="null") if text is None else element("bdi", str(text))


def address(*path: str | int, **query: str | int | None) -> str:
    """A path of this page with a query; what is empty is left out."""
    asked = urlencode({name: entry for name, entry in query.items() if entry not in (None, "")})
    return "/" + "/".join(quote(str(part), safe="") for part in path) + (f"?{asked}" if asked else "")


def counted(number: int, what: str = "row") -> str:
    """A number of things: 1 row, 2 rows."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def link(text: Content, to: str, **attributes: Attribute) -> Markup:
    """A link to a path of this page."""
    return element("a", text, href=to, **attributes)


def table(caption: str, columns: Iterable[str], rows: Iterable[Iterable[Content]], **attributes: Attribute) -> Markup:
    """A table with a caption and a head; the first cell of a row names it."""
    head = element("tr", [element("th", column, scope="col") for column in columns])
    body = [element("tr", [_cell(place, cell) for place, cell in enumerate(row)]) for row in rows]
    parts = (element("caption", caption), element("thead", head), element("tbody", body))
    # A table may be wider than a phone: it scrolls by itself, also by keyboard.
    return element(
        "div", element("table", parts, **attributes), class_="scroll", tabindex=0, role="group", aria_label=caption
    )


def _cell(place: int, cell: Content) -> Markup:
    return element("td", cell) if place else element("th", cell, scope="row")


def _attribute(name: str, content: Attribute) -> str:
    if content is None or content is False:
        return ""
    written = name.rstrip("_").replace("_", "-")
    return f" {written}" if content is True else f' {written}="{escape(_shown(str(content)))}"'


def _shown(text: str) -> str:
    """The text with control characters as pictures of themselves, and without halves of characters."""
    return text.translate(_visible).encode("utf-8", "replace").decode()
