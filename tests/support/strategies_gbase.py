"""Random tables, rows and values as GBase and Informix have them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from eventlog.sources.gbase.layout import PLACES, UNITS, CapturedLayout, ColumnType, ValueForm, layout_of, read_type

QUALIFIERS = [(first, last) for at, first in enumerate(UNITS) for last in UNITS[at:] if first != "fraction"]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


def _moment_types() -> list[str]:
    found = []
    for first, last in QUALIFIERS:
        ends = [f"fraction({digits})" for digits in range(1, 6)] if last == "fraction" else [last]
        found += [f"datetime {first} to {end}" for end in ends]
        if (UNITS.index(first) < 2) == (UNITS.index(last) < 2):
            found += [f"interval {first}{digits} to {end}" for end in ends for digits in ("", "(1)", "(5)", "(9)")]
    return found


decimals = st.integers(1, 32).flatmap(lambda p: st.integers(0, p).map(lambda s: f"decimal({p},{s})"))
types = st.one_of(
    st.sampled_from(
        ["smallint", "integer", "serial", "bigint", "bigserial", "int8", "serial8", "float", "smallfloat", "date"]
        + ["boolean", "char(1)", "nchar(9)", "blob", "clob", "money", "money(8,3)", "decimal", "decimal(5)"]
        + ["varchar(200,0)", "nvarchar(40)", "lvarchar(500)"]
    ),
    st.sampled_from(_moment_types()),
    decimals,
)


def values(kind: ColumnType) -> st.SearchStrategy[Any]:
    """Draw values of a type, NULL among them."""
    return st.none() | _values(kind)


def _values(kind: ColumnType) -> st.SearchStrategy[Any]:
    match kind.form:
        case ValueForm.SMALLINT | ValueForm.INTEGER | ValueForm.BIGINT:
            most = (1 << (8 * (kind.size or 0) - 1)) - 1
            return st.integers(-most, most)
        case ValueForm.INT8:
            return st.integers(-(2**63) + 1, 2**63 - 1)
        case ValueForm.FLOAT:
            return st.floats(allow_nan=False)
        case ValueForm.SMALLFLOAT:
            return st.floats(allow_nan=False, width=32)
        case ValueForm.DECIMAL:
            return _numbers(kind)
        case ValueForm.DATE:
            return st.dates()
        case ValueForm.DATETIME:
            return _moments(kind)
        case ValueForm.INTERVAL:
            return _spans(kind)
        case ValueForm.BOOLEAN:
            return st.booleans()
        case ValueForm.CHAR:
            return st.text("abcxyz ", min_size=kind.size or 0, max_size=kind.size)
        case ValueForm.LOCATOR:
            return st.binary(min_size=76, max_size=76).filter(any)
    return TEXT


def _numbers(kind: ColumnType) -> st.SearchStrategy[Decimal]:
    whole = st.integers(-(10**kind.precision) + 1, 10**kind.precision - 1)
    if kind.scale is not None:
        return whole.map(lambda number: Decimal(f"{number}E-{kind.scale}"))
    return st.builds(lambda number, power: Decimal(f"{number}E{power}"), whole, st.integers(-60, 20))


def _moments(kind: ColumnType) -> st.SearchStrategy[Any]:
    keep = UNITS.index(kind.last)
    step = 10 ** (6 - kind.fraction)

    def cut(value: dt.datetime) -> Any:
        micros = value.microsecond // step * step if kind.fraction else 0
        fields = [value.year, value.month, value.day, value.hour, value.minute, value.second]
        if kind.first == "year" and keep == 2:
            return value.date()
        kept = fields[: keep + 1]
        if kind.first == "year" and keep > 2:
            year, month, day, hour, minute, second = [*kept, *[0] * (6 - len(kept))]
            return dt.datetime(year, month, day, hour, minute, second, micros)
        if kind.first == "hour":
            kept = kept[3:]
            hour, minute, second = [*kept, *[0] * (3 - len(kept))]
            return dt.time(hour, minute, second, micros)
        return _written(kind, [*kept[UNITS.index(kind.first) :], micros // step], 4 if kind.first == "year" else 2)

    return st.datetimes().map(cut)


def _spans(kind: ColumnType) -> st.SearchStrategy[str]:
    first = st.integers(0, 10**kind.precision - 1)
    others = st.tuples(
        *[st.integers(0, 11 if PLACES[name] == 4 else 23) for name in kind.fields[1:] if name != "fraction"]
    )
    fraction = st.integers(0, 10**kind.fraction - 1)

    def text(first: int, others: tuple[int, ...], fraction: int, sign: str) -> str:
        numbers = [first, *others, fraction][: len(kind.fields)]
        return (sign if any(numbers) else "") + _written(kind, numbers, 1)

    return st.builds(text, first, others, fraction, st.sampled_from(["", "-"]))


def _written(kind: ColumnType, numbers: list[int], width: int) -> str:
    """Write the fields as the database does."""
    text = f"{numbers[0]:0{width}d}"
    for name, number in zip(kind.fields[1:], numbers[1:], strict=False):
        before = {"month": "-", "day": "-", "hour": " ", "minute": ":", "second": ":", "fraction": "."}[name]
        text += f"{before}{number:0{kind.fraction if name == 'fraction' else 2}d}"
    return text


@st.composite
def tables(draw: st.DrawFn, most: int = 6) -> CapturedLayout:
    """Draw a layout, fixed columns first as the server orders them."""
    chosen = draw(st.lists(types, min_size=1, max_size=most))
    chosen.sort(key=lambda text: read_type(text).size is None)
    return layout_of(draw(st.integers(-5, 5)), ", ".join(f"c{at} {text}" for at, text in enumerate(chosen)))


def rows(layout: CapturedLayout) -> st.SearchStrategy[dict[str, Any]]:
    """Draw a row of the layout."""
    return st.fixed_dictionaries({column.name: values(column.type) for column in layout.columns})
