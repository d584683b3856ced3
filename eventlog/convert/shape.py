"""Brings columns of any type into the schema of the rows; what cannot be a number becomes the row's problem."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.convert.columns import NUMBERS, ROWS
from eventlog.core.errors import DataError, shortened
from eventlog.sql.names import STANDARD

_whole = re.compile(r" *([+-]?\d+)(?:\.0*)? *", re.ASCII).fullmatch
_INT64 = range(-(2**63), 2**63)


def places_of(names: Sequence[str], origin: str) -> dict[str, int]:
    """Where the ten columns stand among these names; DataError names those that are missing."""
    found = {name.strip().casefold(): place for place, name in reversed(list(enumerate(names)))}
    missing = [name for name in STANDARD if name not in found]
    if missing:
        hint = "The ten columns of a log stand there under their standard names, in any order."
        raise DataError(f"{origin} has no column {', '.join(missing)}.", hint=hint)
    return {name: found[name] for name in STANDARD}


def shaped(columns: Mapping[str, pa.Array], statuses: str = "") -> pa.RecordBatch:
    """The ten columns as rows of ROWS, only those with one of the status letters if there are any."""
    problems: dict[int, str] = {}
    made = [
        _number(columns[name], name, problems) if name in NUMBERS else _text(columns[name], name, problems)
        for name in STANDARD
    ]
    count = len(made[0])
    told = (
        pa.array([problems.get(place) for place in range(count)], pa.string())
        if problems
        else pa.nulls(count, pa.string())
    )
    batch = pa.RecordBatch.from_arrays([*made, told], schema=ROWS)
    if not statuses:
        return batch
    return batch.filter(pc.is_in(batch.column("status"), value_set=pa.array(list(statuses), pa.string())))


def _number(column: pa.Array, name: str, problems: dict[int, str]) -> pa.Array:
    try:
        made = column.cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        made = pa.array(
            [_read(value, name, place, problems) for place, value in enumerate(column.to_pylist())], pa.int64()
        )
    if name == "record_id" and made.null_count:
        for place in pc.indices_nonzero(made.is_null()).to_pylist():
            problems.setdefault(place, "record_id is NULL; it must be a number.")
    return made


def _read(value: Any, name: str, place: int, problems: dict[int, str]) -> int | None:
    if value is None:
        return None
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    match = _whole(text)
    number = int(match[1]) if match and len(match[1]) < 40 else None
    if number is not None and number in _INT64:
        return number
    meant = "the numbers from 1 to 8 have a meaning" if name == "event_type" else "whole numbers identify a row"
    told = f"{name} is {shortened(text)!r}; only {meant}."
    if name == "record_id" or place not in problems:  # without a record_id nothing else can be said of the row
        problems[place] = told
    return None


def _text(column: pa.Array, name: str, problems: dict[int, str]) -> pa.Array:
    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        made = column if column.type == pa.string() else column.cast(pa.string())
        made.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return pa.array(
            [_text_of(value, name, place, problems) for place, value in enumerate(_raw(column))], pa.string()
        )
    return made


def _raw(column: pa.Array) -> list[Any]:
    """The values; texts as bytes, for they may be none."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return list(column.cast(pa.large_binary()).to_pylist())
    return list(column.to_pylist())


def text_of(value: Any) -> str:
    """A value that is no text as text: numbers and times as databases write them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _text_of(value: Any, name: str, place: int, problems: dict[int, str]) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        return text_of(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        problems.setdefault(place, f"{name} is not UTF-8 text.")
        return None
