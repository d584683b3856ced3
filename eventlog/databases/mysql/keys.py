"""Keys of MariaDB and MySQL: one JSON text, which the server reads as a table with a column for
each of the key's.

These servers turn text that is no value of a type into one that is near it, with a warning that
nobody reads: 'abc' into 0, 1.239 into 1.24. So nothing leaves here that they would have to turn
into something else. `bound` is the type that JSON_TABLE gives, and `match` the SQL that compares it
such that the column's index is used.
"""

from __future__ import annotations

import binascii
import math
import re
import struct
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from functools import lru_cache
from typing import Final
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, text

from eventlog.core.schema import Column
from eventlog.core.sql_types import Category, bare_type
from eventlog.databases.lookups import (
    KeyForm,
    lookup_holes,
    nobody,
    octets_of,
    readable,
    reader_of,
    text_of,
    truth_of,
)
from eventlog.databases.mysql.times import read_date, read_datetime, read_span
from eventlog.databases.mysql.types import LONG_TYPES, mysql_value
from eventlog.sql.access import fetch, in_text
from eventlog.sql.dialect import Dialect, statement
from eventlog.sql.lookup import Answer, Key, KeyComparison, Question, value_text

# BIGINT UNSIGNED has up to 20 digits.
_whole = re.compile(r"[+-]?[0-9]{1,20}").fullmatch
# DECIMAL has at most 65 digits there.
_number = re.compile(r"[+-]?[0-9]{1,80}(?:\.[0-9]{0,80})?(?:[eE][+-]?[0-9]{1,3})?").fullmatch
_type = re.compile(
    r"([a-z][a-z0-9 ]*?)\s*(?:\(([0-9, ]*)\)\s*)?( unsigned)?(?: zerofill)?(?: character set .*| collate .*)?"
)


class MysqlKeyForm(KeyForm, frozen=True, kw_only=True):
    """With `collated` the column's own collation decides what the text equals."""

    collated: bool = False


class Collation(Struct, frozen=True, kw_only=True):
    """How a column compares texts."""

    charset: str
    name: str


@lru_cache(maxsize=4096)
def mysql_form(sql_type: str) -> MysqlKeyForm:
    """Choose how keys of this type are looked up; unlisted types as text."""
    match = _type.fullmatch(" ".join(sql_type.lower().split()))
    if match is None:
        return _AS_TEXT
    name, arguments, unsigned = match.groups()
    if name in ("decimal", "numeric"):
        # DECIMAL alone has ten digits and no fraction.
        precision, _, scale = (arguments or "10,0").partition(",")
        return _decimal_form(int(precision), int(scale or 0))
    if name in _INTEGERS:
        return _UNSIGNED if unsigned else _SIGNED
    return _FORMS.get(name, _AS_TEXT)


def comparison(form: MysqlKeyForm, column: str, key: str, collation: Collation | None) -> str:
    """Write SQL comparing a column with a key of its form."""
    if not form.collated:
        return form.match.format(column=column, key=key)
    # A column of another type than it was when the form was chosen: compared byte by byte.
    if collation is None:
        return _AS_TEXT.match.format(column=column, key=key)
    if collation.charset == "utf8mb4":
        return f"{column} = {key} COLLATE {collation.name}"
    there = f"CONVERT({key} USING {collation.charset})"
    # What the column's characters do not have becomes '?', which could be somebody else's key.
    same = f"CAST(CONVERT({there} USING utf8mb4) AS BINARY) = CAST({key} AS BINARY)"
    return f"{column} = {there} COLLATE {collation.name} AND {same}"


class MysqlLookup:
    """The keys as one JSON text, which the server reads as a table whose columns have the types of
    the key's.
    """

    keeps_lengths: Final = True
    at_once: Final = 10_000
    """Keys in a statement, because the server takes none longer than max_allowed_packet."""

    def ask(
        self,
        connection: Connection,
        dialect: Dialect,
        question: Question,
        keys: Sequence[Key],
    ) -> list[Answer]:
        forms = [mysql_form(column.type) for column in question.matched]
        numbers, columns = readable([form.read for form in forms], keys)
        if not numbers:
            return []
        holes = lookup_holes(dialect, question, self, (False,) * len(forms), spell=in_text)
        match = " AND ".join([*self._compare_keys(connection, dialect, question, forms), *nobody(question)])
        values = [f", k{index} {form.bound} PATH '$[{index + 1}]'" for index, form in enumerate(forms)]
        spelled = {**holes, "match": match}
        query = text(statement(dialect, "rows_by_key", values="".join(values), **spelled))
        rows = list(zip(numbers, *columns, strict=True))
        answers: list[Answer] = []
        for start in range(0, len(rows), self.at_once):
            some = rows[start : start + self.at_once]
            answers += fetch(connection, query, {"keys": msgspec.json.encode(some).decode()})
        return answers

    def _compare_keys(
        self,
        connection: Connection,
        dialect: Dialect,
        question: Question,
        forms: Sequence[MysqlKeyForm],
    ) -> list[str]:
        names = [column.name for column in question.matched]
        known = {}
        if any(form.collated for form in forms):
            where = {"schema": question.schema, "table": question.table}
            rows = fetch(connection, text(statement(dialect, "column_collations")), where)
            known = {name: Collation(charset=charset, name=collation) for name, charset, collation in rows}
        conditions = []
        for index, (name, form) in enumerate(zip(names, forms, strict=True)):
            column = f"found.{in_text(dialect.quote(name))}"
            conditions.append(comparison(form, column, f"asked.k{index}", known.get(name)))
        return conditions

    def select_value(self, dialect: Dialect, name: str, column: Column) -> str:
        if column.category is Category.NUMBER:
            return value_text(dialect, column, name)
        return mysql_value(name, column)

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        if bare_type(column.type) in LONG_TYPES:
            return f"LENGTH({name})"
        return None

    def compare_column(self, dialect: Dialect, column: Column) -> KeyComparison:
        form = mysql_form(column.type)
        # A parameter is a text here, and compared as one it would sort as one.
        if form.bound.startswith(("DECIMAL", "DATE", "TIME")):
            form = replace(form, match=form.match.replace("{key}", f"CAST({{key}} AS {form.bound})"))
        elif form.bound == "DOUBLE":
            form = replace(form, match=form.match.replace("{key}", "({key} + 0E0)"))
        return form.compared


def _read_signed(written: str) -> int | None:
    # BOOLEAN is TINYINT here, so that a key may say true.
    truth = truth_of(written)
    value = truth if truth is None else int(truth)
    if _whole(written):
        value = int(written)
    if value is not None and -(2**63) <= value < 2**63:
        return value
    return None


def _read_unsigned(written: str) -> int | None:
    if not _whole(written):
        return None
    value = int(written)
    return value if 0 <= value < 2**64 else None


def _decimal_form(precision: int, places: int) -> MysqlKeyForm:
    """Choose a reader of decimals; one with more digits is refused: it would round to another key."""
    limit = Decimal(10) ** (precision - places)

    def read(written: str) -> str | None:
        if not _number(written):
            return None
        value = Decimal(written)
        exponent = value.normalize(_EXACT).as_tuple().exponent
        fits = value.copy_abs() < limit and isinstance(exponent, int) and exponent >= -places
        return f"{value:f}" if fits else None

    return MysqlKeyForm(bound=f"DECIMAL({precision},{places})", read=reader_of(read))


def _single(written: str) -> str | None:
    """Read a single-precision number as the server compares it: in double precision."""
    if not _number(written):
        return None
    (kept,) = struct.unpack("<f", struct.pack("<f", float(written)))
    return repr(kept)


def _double(written: str) -> str | None:
    if not _number(written):
        return None
    value = float(written)
    return repr(value) if math.isfinite(value) else None


def _base64(written: str) -> str | None:
    content = octets_of(written)
    if content is None:
        return None
    # In one line: TO_BASE64 breaks it, and FROM_BASE64 takes either.
    return binascii.b2a_base64(content, newline=False).decode()


_EXACT: Final = Context(prec=200)
_LONGTEXT: Final = "LONGTEXT CHARACTER SET utf8mb4"
_TEXT: Final = MysqlKeyForm(bound=_LONGTEXT, read=text_of, collated=True)
_AS_TEXT: Final = MysqlKeyForm(
    bound=_LONGTEXT,
    read=text_of,
    match="CAST(CONVERT({column} USING utf8mb4) AS BINARY) = CAST({key} AS BINARY)",
)
_SIGNED: Final = MysqlKeyForm(bound="BIGINT", read=reader_of(_read_signed))
_UNSIGNED: Final = MysqlKeyForm(bound="BIGINT UNSIGNED", read=reader_of(_read_unsigned))
_OCTETS: Final = MysqlKeyForm(bound=_LONGTEXT, read=_base64, match="{column} = FROM_BASE64({key})")
_MOMENT: Final = MysqlKeyForm(bound="DATETIME(6)", read=reader_of(read_datetime))
_DOUBLE: Final = MysqlKeyForm(bound="DOUBLE", read=reader_of(_double))
_FLOAT: Final = MysqlKeyForm(bound="DOUBLE", read=reader_of(_single))
_INTEGERS: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "integer", "bigint", "bool", "boolean", "year"}
)
_FORMS: Final[Mapping[str, MysqlKeyForm]] = {
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _TEXT),
    **dict.fromkeys(("double", "double precision", "real"), _DOUBLE),
    "float": _FLOAT,
    **dict.fromkeys(("datetime", "timestamp"), _MOMENT),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _OCTETS),
    "date": MysqlKeyForm(bound="DATE", read=reader_of(read_date)),
    "time": MysqlKeyForm(bound="TIME(6)", read=reader_of(read_span)),
    "uuid": MysqlKeyForm(bound="CHAR(36)", read=reader_of(lambda written: str(UUID(written)))),
    "bit": _UNSIGNED,
}
