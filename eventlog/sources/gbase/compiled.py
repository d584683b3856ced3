"""Makes, for one layout, the function that reads its rows: one unpacking for all fixed columns, no call for most values.

What a row read this way gives is what `rows.SlowReader` gives; whatever does not fit goes there, and only it knows why.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from string import ascii_lowercase
from typing import Any, Final

from eventlog.sources.gbase.layout import Layout
from eventlog.sources.gbase.quick import PAIRS, Days, read_int8, reading
from eventlog.sources.gbase.rows import FIXED_HEADER, MOST_SIZE, Order, Reader, SlowReader
from eventlog.sources.gbase.types import ColumnType, Form
from eventlog.sources.gbase.values import TextRules

_NULLS: Final = {Form.SMALLINT: "-0x8000", Form.INTEGER: "-0x80000000", Form.BIGINT: "-0x8000000000000000"}
_LETTERS: Final = {
    Form.SMALLINT: "h",
    Form.INTEGER: "i",
    Form.BIGINT: "q",
    Form.DATE: "i",
    Form.FLOAT: "d",
    Form.SMALLFLOAT: "f",
    Form.INT8: "hII",
}
_SHORT: Final = 9
"""Bytes of a decimal that is taken apart with the other columns: sixteen digits."""
_TEMPLATE: Final = """\
def read(data, header_size):
    try:
        if header_size != {header}:
            return slow(data, header_size)
        {sizes}
        {fixed}
        {varying}
        return {{{values}}}
    except ODD:
        return slow(data, header_size)
"""
_SIZES: Final = """\
rest = len(data) - {start}
        {names} = orders[0](data, {at})
        if {total} != rest:
            {names} = orders[-1](data, {at})
            if {total} != rest:
                return slow(data, header_size)
            orders.reverse()
        if rest >= {most}:
            return slow(data, header_size)
        at = {start}"""
_VARCHAR: Final = """\
end = at + {size}
        first = data[at]
        if first + 1 == {size}:
            {value} = data[at + 1:end]
        elif (first << 8 | data[at + 1]) + 2 == {size}:
            {value} = data[at + 2:end]
        else:
            return slow(data, header_size)
        {value} = None if {value} == NUL else text({value})
        at = end"""
_LVARCHAR: Final = """\
end = at + {size}
        null = data[at + 2]
        if {size} < 3 or (data[at] << 8 | data[at + 1]) + 2 != {size} or null > 1:
            return slow(data, header_size)
        {value} = None if null else text(data[at + 3:end])
        at = end"""


def compiled(layout: Layout, texts: TextRules, order: Order = "auto") -> Reader:
    """The reader of a layout's rows."""
    slow = SlowReader(layout, texts, order)
    header = FIXED_HEADER + 4 * len(layout.varying)
    known: dict[str, Any] = {
        "slow": slow,
        "text": texts.read if texts.invalid != "strict" else _plain_text(texts.codec),
        "ODD": (ValueError, LookupError, ArithmeticError, struct.error),
        "NUL": b"\0",
    }
    source = _TEMPLATE.format(
        header=header,
        sizes=_sizes(layout, order, header, known),
        fixed=_fixed(layout, header, known),
        varying="\n        ".join(_varying(layout)) or "pass",
        values=", ".join(_pairs(layout, texts, known)),
    )
    exec(compile(source, f"<rows of label {layout.label}>", "exec"), known)  # noqa: S102  # made above, of no one's text
    reader: Reader = known["read"]
    return reader


def _plain_text(encoding: str) -> Callable[[bytes], str]:
    if encoding == "utf-8":
        return bytes.decode
    return lambda data: str(data, encoding)


def _sizes(layout: Layout, order: Order, header: int, known: dict[str, Any]) -> str:
    count = len(layout.varying)
    start = header + layout.fixed_bytes
    if not count:
        return f"if len(data) != {start}: return slow(data, header_size)"
    signs = {"auto": "<>", "big": ">", "little": "<"}[order]
    known["orders"] = [struct.Struct(f"{sign}{count}I").unpack_from for sign in signs]
    names = [f"s{at}" for at in range(count)]
    total = " + ".join(names)
    return _SIZES.format(start=start, names=", ".join(names) + ",", total=total, at=FIXED_HEADER, most=MOST_SIZE)


def _fixed(layout: Layout, header: int, known: dict[str, Any]) -> str:
    if not layout.fixed:
        return "pass"
    forms, names = [], []
    for at, column in enumerate(layout.fixed):
        form = _form(column.type)
        forms.append(form)
        names += [f"f{at}{letter}" for letter in _parts(form)]
    known["unpack"] = struct.Struct(">" + "".join(forms)).unpack_from
    return f"{', '.join(names)}, = unpack(data, {header})"


def _form(kind: ColumnType) -> str:
    if _is_timestamp(kind):
        return "8B"
    if _is_short(kind):
        return f"{kind.size}B"
    return _LETTERS.get(kind.form, f"{kind.size}s")


def _parts(form: str) -> str | list[str]:
    """What is appended to a column's variable for each of its parts."""
    if form.endswith("B"):
        return ascii_lowercase[: int(form[:-1])]
    return "abc" if form == "hII" else [""]


def _is_short(kind: ColumnType) -> bool:
    """Whether it is a decimal whose pairs are whole and few, so that they are taken apart with the other columns."""
    return kind.form is Form.DECIMAL and kind.scale is not None and not kind.scale % 2 and (kind.size or 0) <= _SHORT


def _is_timestamp(kind: ColumnType) -> bool:
    """Whether its eight bytes are taken apart with those of the other columns."""
    return kind.form is Form.DATETIME and (kind.first, kind.last) == ("year", "second")


def _varying(layout: Layout) -> Iterator[str]:
    for at, column in enumerate(layout.varying):
        form = _VARCHAR if column.type.form is Form.VARCHAR else _LVARCHAR
        yield form.format(size=f"s{at}", value=f"v{at}")


def _pairs(layout: Layout, texts: TextRules, known: dict[str, Any]) -> Iterator[str]:
    """What stands in the braces of the returned dictionary."""
    known |= {f"n{at}": column.name for at, column in enumerate(layout.columns)}
    for at, column in enumerate(layout.fixed):
        yield f"n{at}: {_expression(column.type, f'f{at}', f'slow(data, header_size)[n{at}]', texts, known)}"
    for at in range(len(layout.varying)):
        yield f"n{len(layout.fixed) + at}: v{at}"


def _expression(kind: ColumnType, name: str, slowly: str, texts: TextRules, known: dict[str, Any]) -> str:
    match kind.form:
        case Form.SMALLINT | Form.INTEGER | Form.BIGINT:
            return f"None if {name} == {_NULLS[kind.form]} else {name}"
        case Form.DATE:
            known["days"] = Days()
            return f"days[{name}]"
        case Form.INT8:
            known["int8"] = read_int8
            return f"{name}c << 32 | {name}b if {name}a == 1 else int8({name}a, {name}b, {name}c)"
        case Form.FLOAT | Form.SMALLFLOAT:
            return f"{name} if {name} == {name} else {slowly}"  # NULL is one of the NaN
        case Form.DATETIME if _is_timestamp(kind):
            known["datetime"] = dt.datetime
            quick = f"datetime({name}b * 100 + {name}c, {name}d, {name}e, {name}f, {name}g, {name}h)"
            # Every date of the last thousand years; a century of 100 or more makes a year that there is none of.
            return f"{quick} if {name}a == 0xC7 and {name}c < 100 else {slowly}"
        case Form.BOOLEAN:
            known["truth"] = {b"\0\0": False, b"\0\1": True, b"\1\0": None, b"\1\xff": None}
            return f"truth[{name}]"  # what is neither is read slowly
        case Form.CHAR:
            trimmed = f"{name}.rstrip(b' ')" if texts.trim else name
            return f"None if {name}[0] == 0 else text({trimmed})"
    known[f"read_{name}"] = reading(kind)
    if not _is_short(kind):
        return f"read_{name}({name})"
    known |= {"Decimal": Decimal, "PAIRS": PAIRS}
    return " else ".join(
        [*_spelled(kind, name), f"read_{name}(bytes(({name}{f', {name}'.join(_parts(_form(kind)))})))"]
    )


def _spelled(kind: ColumnType, name: str) -> Iterator[str]:
    """A short decimal as its pairs spell it, for each place of the point that its first byte may name."""
    _, *pairs = [name + letter for letter in _parts(_form(kind))]
    taken = (kind.scale or 0) // 2
    for whole in range(1, len(pairs) - taken + 1):
        end = whole + taken
        digits = [f"{{PAIRS[{pair}]}}" for pair in pairs[:end]]
        digits.insert(whole, ".")
        zeros = f" and not ({' or '.join(pairs[end:])})" if pairs[end:] else ""
        yield f"Decimal(f'{''.join(digits)}') if {name}a == {0xC0 + whole}{zeros}"
