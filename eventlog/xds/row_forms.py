"""Forms of rows: the text of all `<add-attr>` elements of a row at once.

Rows of a table have values in the same sets of columns again and again. So what stands between the values is
made once for a set of columns, and what must be escaped is looked for once in all values of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any, Final

from msgspec import Struct

from eventlog.core.errors import ExpressionError
from eventlog.core.model import CellOrAbsent
from eventlog.xds.values import Field, Fields, escape, special, values

MOST_FORMS: Final = 1_000
"""So many sets of columns of a table are remembered: rows of twelve columns with NULL have up to 4,096."""


class RowForm(Struct, frozen=True):
    """The elements of a row with values in certain columns: `text` has a `%s` for each value.

    `others` are columns, with their places, of which not every text stands as it is but for escaping.
    """

    text: str
    others: tuple[tuple[int, str, Field], ...]

    def fill(self, row: Sequence[CellOrAbsent]) -> str | None:
        """Put values in; None where one of them is no text, says nothing, or cannot be written."""
        texts: list[Any] = [*row]
        elements: list[tuple[int, str]] = []
        try:
            for place, column, field in self.others:
                value, texts[place] = texts[place], ""
                if type(value) is str and field.odd(value) is None:
                    elements.append((place, f"{field.opening}{value}</value>"))
                elif written := "".join(values(field, value, column)):
                    elements.append((place, written))
                else:
                    return None
            # One search for all of them.
            if special("".join(texts)) is not None:
                texts = [*map(escape, texts)]
        except (ExpressionError, TypeError):
            return None
        for place, written in elements:
            texts[place] = written
        return self.text % tuple(texts)


class RowForms:
    """The forms of a table's rows, each made when its columns come the second time."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._forms: dict[tuple[str, ...], RowForm | None] = {}
        self._met: set[tuple[str, ...]] = set()

    def write(self, names: tuple[str, ...], row: Sequence[CellOrAbsent]) -> str | None:
        """Write the elements of these columns; None where there is no form for them, or it does not fit the values."""
        if None in row and len({*names}) == len(names):
            known = [value is not None for value in row]
            names, row = tuple(compress(names, known)), list(compress(row, known))
        form = self._forms.get(names)
        if form is None and names not in self._forms:
            form = self._meet(names)
        return None if form is None else form.fill(row)

    def _meet(self, names: tuple[str, ...]) -> RowForm | None:
        if len(self._met) >= MOST_FORMS:
            self._met.clear()
            self._forms.clear()
        if names not in self._met:
            self._met.add(names)
            return None
        form = self._forms[names] = _make_form(names, self._fields)
        return form


def _make_form(names: tuple[str, ...], fields: Fields) -> RowForm | None:
    if len({*names}) < len(names):
        return None  # a child table's column, whose values come in one element
    pieces: list[str] = []
    others: list[tuple[int, str, Field]] = []
    for place, name in enumerate(names):
        try:
            field = fields[name]
        except ExpressionError:
            return None  # which one by one is said of the first column that cannot be written
        before, after = field.add, "</add-attr>"
        if field.odd is special:
            before, after = f"{field.add}{field.opening}", f"</value>{after}"
        else:
            others.append((place, name, field))
        pieces.append(f"{before.replace('%', '%%')}%s{after}")
    return RowForm("".join(pieces), tuple(others))
