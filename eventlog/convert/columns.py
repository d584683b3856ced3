"""The record batches that pass between the stages of a conversion: one schema each."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from eventlog.sql.names import STANDARD

NUMBERS: Final = frozenset({"record_id", "event_type"})
"""The columns that hold integers; all others are text, event_time in ISO 8601."""

PROBLEM: Final = "problem"
"""Why a row cannot even be given to the rules (its record_id is no number, …); NULL for all others."""

OBJECT: Final = "object"
"""The number of the row's object: a stable hash of what the object is told apart by. Equal objects have equal numbers."""

ROWS: Final = pa.schema(
    [(name, pa.int64() if name in NUMBERS else pa.string()) for name in STANDARD] + [(PROBLEM, pa.string())]
)
"""Rows of the input: the ten columns, and `problem`. Only a row with a problem may have no record_id."""

PLACED: Final = ROWS.append(pa.field(OBJECT, pa.int64()))
"""Rows with their objects."""

RENDERED: Final = pa.schema([("position", pa.int64()), ("text", pa.large_string())])
"""Changes as the format writes them, each at the record_id of its last event; no two have the same position."""

OUTCOMES: Final = pa.schema(
    [("position", pa.int64()), ("status", pa.string()), ("reason", pa.string()), ("note", pa.string())]
)
"""What became of every row; without a position where the row had no record_id."""

TOLD_OUTCOMES: Final = pa.schema(
    [("position", pa.string()), ("status", pa.string()), ("reason", pa.string()), ("note", pa.string())]
)
"""The same of a stream, whose positions are several numbers."""

STREAM_OUTCOMES: Final = pa.schema([("place", pa.int64()), *TOLD_OUTCOMES])
"""The same on the way, in the order of `place`."""
