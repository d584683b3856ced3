"""Oracle's column types, and how values are asked for when rows are read back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from eventlog.sql.column_types import ColumnTypes, TypeOptions

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

SECONDS: Final = "YYYY-MM-DD HH24:MI:SS"
NANOSECONDS: Final = f"{SECONDS}.FF9"
_arguments = re.compile(r"\([^)]*\)")


class OracleTypes(ColumnTypes):
    """What differs in Oracle."""

    # In the order of the calls also on a cluster, where each node would else have numbers of its own in hand.
    number_options: ClassVar[TypeOptions] = {"oracle_order": True}

    def binary(self, length: int | None) -> TypeEngine[Any]:
        from sqlalchemy.dialects import oracle

        return super().binary(length) if length is None else oracle.RAW(length)

    def timestamp(self, *, zoned: bool) -> TypeEngine[Any]:
        from sqlalchemy.dialects import oracle

        return oracle.TIMESTAMP(timezone=zoned)

    def time(self) -> TypeEngine[Any]:
        """Oracle has no time of day."""
        import sqlalchemy as sa

        return sa.String(32)

    def log_number(self) -> TypeEngine[Any]:
        import sqlalchemy as sa

        return sa.Numeric(19, 0)

    def log_moment(self) -> TypeEngine[Any]:
        """A DATE of Oracle has no fractions, which the log can do without and the companion cannot."""
        import sqlalchemy as sa

        return sa.TIMESTAMP()

    def log_name(self) -> TypeEngine[Any]:
        import sqlalchemy as sa

        return sa.String(400)

    def log_key(self) -> TypeEngine[Any]:
        import sqlalchemy as sa

        return sa.String(4000)


def oracle_value(sql_type: str, column: str) -> str:
    """SQL for the value of a column: times as text, whatever the years; CHAR without its padding."""
    return _VALUES.get(plain_name(sql_type), "{column}").format(column=column)


def has_order(sql_type: str) -> bool:
    """Whether Oracle can sort by a column of this type."""
    return plain_name(sql_type) not in _UNORDERED


def plain_name(sql_type: str) -> str:
    """The name of a type without its arguments, wherever in it they stand."""
    return " ".join(_arguments.sub(" ", sql_type.lower()).split())


_IN_UTC: Final = f"TO_CHAR(SYS_EXTRACT_UTC({{column}}), '{NANOSECONDS}')"
_VALUES: Final = {
    **dict.fromkeys(("char", "nchar"), "RTRIM({column})"),
    "date": f"TO_CHAR({{column}}, '{SECONDS}')",
    "timestamp": f"TO_CHAR({{column}}, '{NANOSECONDS}')",
    **dict.fromkeys(("timestamp with time zone", "timestamp with local time zone"), _IN_UTC),
    **dict.fromkeys(("interval year to month", "interval day to second"), "TO_CHAR({column})"),
    "rowid": "ROWIDTOCHAR({column})",
    "xmltype": "XMLSERIALIZE(CONTENT {column} AS CLOB)",
}
_UNORDERED: Final = frozenset({"clob", "nclob", "blob", "bfile", "long", "long raw", "xmltype", "json"})
