"""Cells of tables that carry the name of their column: a phone shows a row as a few lines, without
a head above them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

_opening = re.compile(r"<(tr|td|th)\b")


def with_columns(rows: Markup, columns: Sequence[str]) -> Markup:
    """Label each cell of a table's rows with its column, except the first, the row's title.

    Texts inside are already escaped, so each `<` begins one of our elements.
    """
    from markupsafe import Markup, escape

    attributes = [f' data-column="{escape(name)}"' for name in columns]
    unused: Iterator[str] = iter(())

    def open_cell(element: re.Match[str]) -> str:
        nonlocal unused
        if element[1] == "tr":
            unused = iter(attributes)
            return element[0]
        attribute = next(unused, ' data-column=""')
        return element[0] if element[1] == "th" else element[0] + attribute

    return Markup(_opening.sub(open_cell, rows))  # noqa: S704 - it is HTML that our own templates wrote
