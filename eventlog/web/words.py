"""How the page writes addresses, numbers, times, and texts that cannot be seen. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from eventlog.core.model import Kind

_visible = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"} | {0x7F: "\u2421"}


def address(*path: str | int, **query: str | int | None) -> str:
    """A path of this page with a query; what is empty is left out."""
    asked = urlencode({name: entry for name, entry in query.items() if entry not in (None, "")}, errors="replace")
    return "/" + "/".join(quote(str(part), safe="", errors="replace") for part in path) + (f"?{asked}" if asked else "")


def kind_name(event_type: str | int | None) -> str:
    """An event type in words."""
    known = {str(kind.value): kind.name.lower().replace("_", " ") for kind in Kind}
    return f"{event_type} {known.get(str(event_type), 'unknown')}"


def shown(content: Any) -> Any:
    """What stands in a template, before it is escaped: control characters as pictures of themselves, no half characters.

    What is HTML already was made of such texts. None says nothing.
    """
    if content is None:
        return ""
    if hasattr(content, "__html__"):
        return content
    return str(content).translate(_visible).encode("utf-8", "replace").decode()
