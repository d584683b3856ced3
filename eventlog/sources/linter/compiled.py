"""Makes, for one layout, the function that reads its records: a run of fixed columns at once, no call for most values.

What a record read this way gives is what `PackedCodec` gives when it reads carefully; whatever does not fit goes
there, and only it knows why.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from eventlog.core.errors import DataError
from eventlog.core.model import Row
from eventlog.sources.linter.fields import format_of, reader
from eventlog.sources.linter.layouts import ByteOrder, Field, RecordLayout, Type
from eventlog.sources.linter.numbers import date, decimal
from eventlog.sources.linter.remembered import Remembered

Decoder = Callable[[bytes], Row]
_TEMPLATE: Final = """\
def read(data):
    try:
        {steps}
        if at {differs} len(data):
            return slow(data)
        {nulls}
        return {{{values}}}
    except ODD:
        return slow(data)
"""
_NULLS: Final = """\
if nulls := {mask}:
            if nulls >> {count}:
                return slow(data)
            return {{{values}}}"""
_decimals, _dates = Remembered(decimal), Remembered(date)


def compiled(layout: RecordLayout, slow: Decoder) -> Decoder:
    """The reader of a layout's records."""
    fields = layout.fields
    known: dict[str, Any] = {"slow": slow, "ODD": (DataError, ValueError, LookupError, struct.error)}
    size = -(-len(fields) // 8) if layout.null_mask else 0
    values = [_expression(at, field, layout, known) for at, field in enumerate(fields)]
    source = _TEMPLATE.format(
        steps="\n        ".join(_steps(layout, size, known)),
        differs="!=" if layout.strict else ">",
        nulls=_nulls(fields, values, size, known) if size else "",
        values=", ".join(f"{field.name!r}: {value}" for field, value in zip(fields, values, strict=True)),
    )
    exec(compile(source, f"<records of {layout.table.name!r}>", "exec"), known)  # noqa: S102  # made above, of no one's text but quoted names
    made: Decoder = known["read"]
    return made


def _steps(layout: RecordLayout, size: int, known: dict[str, Any]) -> Iterator[str]:
    """Takes the record apart: each run of fixed columns, with the length of the variable one that ends it."""
    order = "<" if layout.byte_order == "little" else ">"
    yield f"at = {size}"
    run, names = "", []
    for at, field in enumerate(layout.fields):
        fixed = format_of(field)
        run += fixed or "H"
        names.append(f"v{at}")
        if fixed is None or at == len(layout.fields) - 1:
            form = struct.Struct(order + run)
            known[f"unpack{at}"] = form.unpack_from
            yield f"{', '.join(names)}, = unpack{at}(data, at)"
            yield f"at += {form.size}"
            run, names = "", []
        if fixed is None:
            yield f"end = at + v{at}"
            yield f"v{at} = data[at:end]"
            yield "at = end"


def _nulls(fields: tuple[Field, ...], values: list[str], size: int, known: dict[str, Any]) -> str:
    known["number"] = int.from_bytes
    pairs = [
        f"{field.name!r}: None if nulls & {1 << at} else {value}"
        for at, (field, value) in enumerate(zip(fields, values, strict=True))
    ]
    mask = "data[0]" if size == 1 else f"number(data[:{size}], 'little')"
    return _NULLS.format(mask=mask, count=len(fields), values=", ".join(pairs))


def _expression(at: int, field: Field, layout: RecordLayout, known: dict[str, Any]) -> str:
    """What makes a column's value of what lies in the record."""
    match field.type:
        case Type.DECIMAL:
            known["decimals"] = _decimals
            return f"decimals[v{at}]"
        case Type.DATE:
            known["dates"] = _dates
            return f"dates[v{at}]"
        case Type.BOOLEAN:
            known["truths"] = (False, True)
            return f"truths[v{at}]"
    texts = _texts(Field(name="", type=field.type, code_page=field.code_page), layout.byte_order)
    if texts is None:
        return f"v{at}"
    known[f"texts{at}"] = texts
    return f"texts{at}[v{at}]"


@lru_cache(256)
def _texts(field: Field, byte_order: ByteOrder) -> Remembered | None:
    """Columns that are read alike, of whatever tables, remember their texts together."""
    read = reader(field, byte_order)
    return None if read is None else Remembered(read)
