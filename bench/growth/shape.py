"""What a log looks like that grows in one thing and not in others: rows, objects, columns, tables, characters of a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from bench.growth.series import powers
from bench.rules import LogRow
from eventlog.core.schema import Catalog, Column, Table

CHARACTERS: Final = 100
"""Where values grow the unit is so many characters of them: that longer values cost more is no surprise."""
LONG: Final = 20_000_000
"""Characters of all values together, where they grow."""
ONE_BATCH: Final = 6
"""A power of ten: so many rows of one object, which are never cut in two, still have room in memory."""
WAITING: Final = "waiting rows"
OBJECTS: Final = "objects, each in one row"
Series = dict[str, list["Shape"]]
"""What grows, and the rows at each of its sizes."""


class Shape(Struct, frozen=True, kw_only=True):
    """So many rows, so many for each object, which take turns; the first of an object insert its columns, others update.

    `size` is that of what grows, `once` says that one run must do, `in_characters` that they are the unit and not rows.
    """

    rows: int
    size: int = 0
    each: int = 8
    columns: int = 6
    tables: int = 1
    characters: int = 10
    once: bool = False
    in_characters: bool = False
    prefix: str = ""

    @property
    def objects(self) -> int:
        return max(1, self.rows // self.each)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.table}{number}" for number in range(self.tables))

    @property
    def table(self) -> str:
        """What the names of its tables begin with: one database has tables of several shapes."""
        return f"{self.prefix}t{self.columns}_"

    @property
    def catalog(self) -> Catalog:
        key, columns = Column(name="idu", type="integer", key=1), [Column(name=f"c{n}") for n in range(self.columns)]
        return Catalog([Table(schema="bench", name=name, columns=(key, *columns)) for name in self.names])

    @property
    def texts(self) -> tuple[str, str]:
        """The former and the latter value of every update; one of them needs escaping."""
        former, latter = ("x" * (self.characters - 1) + last for last in "&z")
        return former, latter

    @property
    def units(self) -> int:
        """Rows; where values grow, so many characters of the new ones."""
        return max(1, self.rows * self.characters // CHARACTERS) if self.in_characters else self.rows

    def log_rows(self) -> Iterator[LogRow]:
        """Rows in the order of the log's columns."""
        former, latter = self.texts
        for number in range(self.rows):
            place, which = divmod(number, self.objects)
            first = place < self.columns
            kind, old = (1, None) if first else (2, former)
            column, table = f"c{place % self.columns}", f"{self.table}{which % self.tables}"
            yield number + 1, f"idu={which}", "N", kind, "2025-03-23 10:57:19", "app", table, column, old, latter


def shapes(rows: int, *, most: int, once_from: int | None = None, least: int = 3) -> Series:
    """One series for each thing that there can be more of, up to ten to the `most`; `rows` of them where others grow."""
    many, quick = powers(least, most), most < 3

    def once(size: int) -> bool:
        return once_from is not None and size >= once_from

    return {
        WAITING: [Shape(rows=n, size=n, once=once(n)) for n in many],
        OBJECTS: [Shape(rows=n, size=n, each=1, once=once(n)) for n in many],
        "rows of one object": [
            Shape(rows=max(rows, n), size=n, each=n, once=once(n)) for n in powers(0, min(most, ONE_BATCH))
        ],
        "columns of a table": [Shape(rows=rows, size=n, each=n, columns=n) for n in powers(1, 2 if quick else 3)],
        "tables": [Shape(rows=rows, size=n, tables=n) for n in powers(0, 2 if quick else 3)],
        f"characters of a value, for each {CHARACTERS}": [long_values(n) for n in powers(1, 2 if quick else 7)],
    }


def long_values(characters: int) -> Shape:
    """Rows with values of so many characters: as many as have room."""
    rows = max(1, min(LONG // 10_000, LONG // characters))
    return Shape(rows=rows, size=characters, characters=characters, in_characters=True)
