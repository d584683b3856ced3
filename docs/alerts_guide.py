"""What the status page shows of the guide "When something is wrong": its sections about alerts, as HTML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
GUIDE: Final = ROOT / "docs" / "how-to" / "runbook.md"
PAGE: Final = ROOT / "eventlog" / "web" / "templates" / "guide.html"
BEGIN: Final = '{# Written by docs/generate.py; ./dev docs writes it anew. #}\n{% extends "frame.html" %}\n{% block content %}\n{% raw %}\n'
END: Final = "{% endraw %}\n{% endblock %}\n"
LINK: Final = re.compile(r"\[([^]]+)\]\([^)]+\)")
"""A link leads to another page of the docs, which the status page does not have."""


def alerts_guide() -> str:
    """Write the template: a section for each alert, which a banner links to by its name."""
    import markdown  # type: ignore[import-untyped]  # its stubs are a package of their own

    _, *sections = re.split(r"^## (?=Eventlog)", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    written = []
    for section in sections:
        name, _, text = section.partition("\n")
        body = markdown.markdown(LINK.sub(r"\1", text), extensions=["tables"], output_format="html")
        written.append(f'<section id="{name}"><h2>{name}</h2>\n{body}\n</section>\n')
    return BEGIN + "".join(written) + END
