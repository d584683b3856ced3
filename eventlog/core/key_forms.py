"""How the values of key columns are spelled: texts that are one value of the column's type are one
text, as our triggers write it.

What is no value of its type stays as it is, and so does text: there the row itself says how it is spelled.
Texts that a collation surely takes for one count as one object.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from string import ascii_uppercase
from typing import Final
from uuid import UUID

from msgspec import Struct

from eventlog.core.schema import Column, Made, Table
from eventlog.core.sql_types import EXACT_TYPES, PADDED_TYPES, Category, bare_type, fraction_digits, is_zoned, truth_of
from eventlog.core.tablekey import format_parts, parse
from eventlog.core.times import in_iso_form, read_moment

MOST_DIGITS: Final = 1000
"""A longer number is left as it is: nobody has such keys, and reading one could take minutes."""
ANY: Final = r"""[^,;'+"=\\<> ]+"""
"""Texts that stand in a key as they are, where the column has no form of its own."""
_exponent = re.compile(r"[^eE]*[eE][+-]?\d{1,3}", re.ASCII).fullmatch


class KeySpelling(Struct, frozen=True):
    """`spelled` is a regular expression for texts that have the form already, or nearly all of them;
    `spell` gives others the form.
    """

    spelled: str
    spell: Callable[[str], str]


@lru_cache(maxsize=4096)
def form_of(column: Column, *, untyped: bool = False) -> KeySpelling | None:
    """Find the form of a key column's values; None where texts are compared as they are. `untyped` columns
    take values of any type: there only differently spelled numbers are equal.
    """
    category, name = column.category, bare_type(column.type)
    if column.made is Made.TYPE:
        return None
    if category is Category.INT:
        return KeySpelling(r"(?:0|-?[1-9][0-9]*)", _spell_whole)
    if category is Category.NUMBER and name in EXACT_TYPES:
        return _exact(fraction_digits(column.type))
    if untyped:
        return None
    if category is Category.STATE:
        return KeySpelling("[01]", _spell_state)
    if category is Category.DATE:
        return KeySpelling(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", _spell_date)
    if category is Category.TIMESTAMP:
        return KeySpelling(r"(?!)", _spell_moment if is_zoned(column.type) else _spell_time)
    if name in PADDED_TYPES:
        return KeySpelling(ANY, lambda text: text.rstrip(" "))
    return KeySpelling(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", _spell_uuid) if name == "uuid" else None


def folding_of(column: Column) -> KeySpelling | None:
    """Find the form under which texts of a key column count as one, by its collation; None where each is one."""
    case, blanks = "case" in column.alike, "blanks" in column.alike or bare_type(column.type) in PADDED_TYPES
    if not case:
        # What stands in a key without quotes has no blanks at its end.
        return KeySpelling(ANY, _without_blanks) if "blanks" in column.alike else None
    fold = (lambda text: _without_blanks(text).translate(_SMALL)) if blanks else (lambda text: text.translate(_SMALL))
    return KeySpelling(r"""[^,;'+"=\\<> A-Z]+""", fold)


def _without_blanks(text: str) -> str:
    return text.rstrip(" ")


_SMALL: Final = {ord(letter): letter.lower() for letter in ascii_uppercase}


def forms_of(table: Table | None) -> dict[str, KeySpelling]:
    """Map a table's key columns to their forms, where they have one."""
    if table is None:
        return {}
    forms = {column.name: form_of(column, untyped=table.untyped) for column in table.key_columns}
    return {name: form for name, form in forms.items() if form is not None}


def foldings_of(table: Table | None) -> dict[str, KeySpelling]:
    """Map a table's key columns to the forms under which their texts count as one, where several do."""
    if table is None or not table.loose_key:
        return {}
    foldings = {column.name: folding_of(column) for column in table.key_columns}
    return {name: folding for name, folding in foldings.items() if folding is not None}


def fold_values(key: str, foldings: Mapping[str, KeySpelling]) -> str:
    """Make an identity for a key of which the database takes several texts for one."""
    return format_parts(
        (name, foldings[name].spell(value) if name in foldings else value) for name, value in parse(key).parts
    )


def _number(text: str) -> Decimal | None:
    if len(text) > MOST_DIGITS or "_" in text or ("e" in text.lower() and not _exponent(text)):
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _spell_whole(text: str) -> str:
    number = _number(text)
    if number is None or number != number.to_integral_value():
        return text
    return str(int(number))


def _exact(scale: int | None) -> KeySpelling:
    def spell(text: str) -> str:
        number = _number(text)
        if number is None:
            return text
        places = -int(number.normalize().as_tuple().exponent)
        if scale is None:
            return format(abs(number) if not number else number.normalize(), "f")
        if places > scale:
            return text
        return format(number or abs(number), f".{scale}f")

    if scale is None:
        return KeySpelling(r"(?:0|-?[1-9][0-9]*|-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9])", spell)
    return KeySpelling(rf"(?:0|-?[1-9][0-9]*)\.[0-9]{{{scale}}}", spell)


def _spell_state(text: str) -> str:
    state = truth_of(text)
    return text if state is None else str(int(state))


def _spell_date(text: str) -> str:
    moment = _moment(text)
    return text if moment is None or moment.time() != dt.time.min else moment.date().isoformat()


_nanoseconds = re.compile(r".*\.\d{6}(?:000|\d{0,3}[1-9]\d{0,2}).*", re.ASCII).fullmatch
"""Times that have nine digits of a second, or more than Python can tell."""


def _spell_time(text: str) -> str:
    if _nanoseconds(text):
        return text
    moment = _moment(text)
    if moment is None or moment.tzinfo is not None:
        return text
    return f"{moment.isoformat(' ', 'microseconds')}000"


def _spell_moment(text: str) -> str:
    if _nanoseconds(text):
        return text
    moment = _moment(text)
    if moment is None:
        return text
    if moment.tzinfo is not None:
        try:
            moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
        except OverflowError:
            return text
    return f"{moment.isoformat(' ', 'microseconds')}000"


def _moment(text: str) -> dt.datetime | None:
    try:
        return read_moment(in_iso_form(text.strip(" ")))
    except ValueError:
        return None


def _spell_uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        return text
