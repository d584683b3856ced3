"""View columns that say in their names what they are: `pk_idu`, `sv_fname`, `mv_phoneno`,
`fk_mv__idg__mbr_of`.

view-column ::= ["sv_" | "mv_"] column
              | "pk_" ["sv_"] [group] ["_" key-column "__"] column
              | "fk_" ["sv_" | "mv_"] [group] "_" key-column "__" column
group       ::= non-negative-integer "_"
"""

from __future__ import annotations

import re

from msgspec import Struct

_pk = re.compile(r"pk_(?:sv_)?(?:\d+_)?(?:_.+?__)?(.+)", re.IGNORECASE).fullmatch
_fk = re.compile(r"fk_(sv_|mv_)?(?:\d+_)?_(.+?)__(.+)", re.IGNORECASE).fullmatch
_other = re.compile(r"(sv_|mv_)(.+)", re.IGNORECASE).fullmatch


class ColumnName(Struct, frozen=True, kw_only=True):
    """What a view column's name says; in `mapped`, for documents, only pk_ and fk_ survive."""

    column: str
    key: bool = False
    multiple: bool = False
    refers_to: str | None = None

    @property
    def mapped(self) -> str:
        if self.key:
            return "pk_" + self.column
        if self.refers_to:
            return "fk_" + self.column
        return self.column


def read_column_name(native: str) -> ColumnName:
    """Reads the prefixes off a view column's name; one without any holds a plain, single value."""
    if match := _pk(native):
        return ColumnName(column=match[1], key=True)
    if match := _fk(native):
        multiple = (match[1] or "").lower() == "mv_"
        return ColumnName(column=match[3], multiple=multiple, refers_to=match[2])
    if match := _other(native):
        return ColumnName(column=match[2], multiple=match[1].lower() == "mv_")
    return ColumnName(column=native)
