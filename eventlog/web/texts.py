"""Texts of the database as a page shows them, in HTML. Pure.

Law: whatever a text holds, a browser reads it as that text and as nothing else. Texts are escaped
where they meet HTML.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from eventlog.web.addresses import address

if TYPE_CHECKING:
    from markupsafe import Markup

SHORT_CHARACTERS: Final = 12
"""Of an id that is shown whole."""

END_CHARACTERS: Final = 8
"""Of the end of a longer one."""

_visible = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"} | {0x7F: "\u2421"}


def make_visible(content: Any) -> Any:
    """Convert content for a template: control characters to pictures, no half characters.

    Markup is returned as it is: it was made of such texts. None is empty.
    """
    if content is None:
        return ""
    if hasattr(content, "__html__"):
        return content
    text = str(content)
    # Nothing that is printable is a control character or half of a character.
    return text if text.isprintable() else text.translate(_visible).encode("utf-8", "replace").decode()


def value(text: str | int | None) -> Markup:
    """Draw a database's text, or NULL; `bdi` keeps it from turning the text around it."""
    from markupsafe import Markup, escape

    if text is None:
        return Markup('<i class="null">NULL</i>')
    return Markup(f"<bdi>{escape(make_visible(text))}</bdi>")  # noqa: S704 - the text is escaped


def value_if(text: str | int | None) -> Markup | str:
    """Draw a database's text if there is one."""
    return value(text) if text else ""


def short(text: str | None, most: int = 100) -> Markup | str:
    """Draw the beginning of a database's text; empty for NULL."""
    if text is None:
        return ""
    return value(text if len(text) <= most else f"{text[:most]}…")


def ident(number: str | int) -> Markup:
    """Draw an id, shortened if long; a tooltip has the whole."""
    from markupsafe import Markup, escape

    end = short_id(number)
    if end == str(number):
        return escape(make_visible(number))
    return Markup('<span class="word" title="{}">{}</span>').format(number, end)


def short_id(text: str | int) -> str:
    """Return the end of a long number; without the leading zeros of a document's id."""
    whole = str(text)
    if len(whole) <= SHORT_CHARACTERS or not whole.lstrip("-").isdecimal():
        return whole
    digits = whole.lstrip("0") or "0"
    return f"…{digits if len(digits) <= SHORT_CHARACTERS else digits[-END_CHARACTERS:]}"


_fraction = re.compile(r"(\d\d:\d\d:\d\d)[.,]\d+")
_links = re.compile(
    r"`(?P<command>[^`]+)`|(?P<row>(?<!no )\b[Rr]ow (?P<number>[0-9]{1,19}))\b|(?P<page>\b(?:page (?:Rows|Tables|Errors)|[Oo]verview)\b)"
)
_pages: Final = {"rows": ("rows",), "tables": ("tables",), "overview": ()}


def moment(text: str | None) -> Markup | str:
    """Write a time to the second; whoever points at it sees it whole."""
    from markupsafe import Markup

    if text is None:
        return ""
    short_text = _fraction.sub(r"\1", text)
    if short_text == text:
        return value(text)
    return Markup('<bdi title="{}">{}</bdi>').format(make_visible(text), make_visible(short_text))


def link_sentence(text: str | None) -> Markup | str:
    """Write a sentence with links to the rows and pages that it names, commands as such, and times to the
    second.

    It may have words of the database in it: all of it is escaped, and links lead to this page only.
    """
    from markupsafe import Markup, escape

    if text is None:
        return ""
    parts, at, whole = [], 0, _fraction.sub(r"\1", make_visible(text))
    for found in _links.finditer(whole):
        parts += [escape(whole[at : found.start()]), _link(found)]
        at = found.end()
    return Markup("").join([*parts, escape(whole[at:])])


def _link(found: re.Match[str]) -> Markup:
    from markupsafe import Markup

    if found["command"]:
        return Markup("<code>{}</code>").format(found["command"])
    if found["row"]:
        return Markup('<a href="{}">{}</a>').format(address("rows", found["number"]), found["row"])
    name = found["page"].lower().removeprefix("page ")
    to = address("rows", status="EF") if name == "errors" else address(*_pages[name])
    return Markup('<a href="{}">{}</a>').format(to, found["page"])
