"""What stands around every page: head, navigation, messages; and the two pages that are only a frame. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from eventlog.version import VERSION
from eventlog.web.html import Content, Markup, address, element, link

DOCTYPE: Final = "<!doctype html>"
EVERY: Final = 10
"""Seconds after which a page without JavaScript is loaded again."""

PAGES: Final = (("Overview", address()), ("Rows", address("rows")), ("Errors", address("rows", status="EF")))


class Look(Struct, frozen=True, kw_only=True):
    """What a page must know of who looks: the log, their name, whether they may act, and where styles are."""

    log: str
    visitor: str
    acts: bool
    style: str
    script: str
    leaves: bool = False
    proof: str = ""


def page(title: str, content: Content, look: Look, *, live: bool = False, here: str = "") -> bytes:
    """A whole page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} · {look.log} · eventlog"),
        element("link", rel="stylesheet", href=look.style),
        element("link", rel="icon", href="data:,"),
        [
            element("script", src=look.script, defer=True),
            element("noscript", element("meta", http_equiv="refresh", content=EVERY)),
        ]
        if live
        else None,
    )
    body = element(
        "body",
        element("a", "To the content", href="#content", class_="skip"),
        _banner(look, here),
        element("main", element("h1", title), content, id="content"),
        element("footer", f"eventlog {VERSION} · ", look.visitor, "" if look.acts else " · read-only", _leave(look)),
    )
    return f"{DOCTYPE}{element('html', head, body, lang='en')}".encode()


def message(title: str, sentences: Content, look: Look) -> bytes:
    """A page that says one thing."""
    return page(title, [element("p", sentences), element("p", link("To the overview", address()))], look)


def login(look: Look, *, wrong: bool) -> bytes:
    """The form that asks for the token."""
    form = element(
        "form",
        element("p", "That was not the token.", class_="bad", role="alert") if wrong else None,
        element("label", "Token", for_="token"),
        element("input", id="token", name="token", type="password", autocomplete="current-password", required=True),
        element("button", "Log in"),
        method="post",
        action=address("login"),
        class_="card narrow",
    )
    return page("Log in", form, look)


def hidden(name: str, value: str) -> Markup:
    """A field that a form sends along."""
    return element("input", type="hidden", name=name, value=value)


def _banner(look: Look, here: str) -> Markup:
    links = [link(name, to, aria_current="page" if name == here else None) for name, to in PAGES]
    return element("header", element("strong", look.log), element("nav", links, aria_label="Pages"))


def _leave(look: Look) -> Markup | None:
    if not look.leaves:
        return None
    button = element("button", "Log out", class_="plain")
    return element("form", hidden("proof", look.proof), button, method="post", action=address("logout"))
