"""Schemas of Arrow and functions as Spark takes them, and batches of Spark's as ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa


def ddl(schema: pa.Schema) -> Any:
    """Convert a schema to Spark's; a time without a zone stays one."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def name_function(function: Callable[..., Any], *arguments: object) -> Callable[..., Any]:
    """Bind arguments to a function and keep its name, for `explain()` to show."""
    step = partial(function, *arguments)
    # Spark asks a function for its name, and a partial has none.
    step.__dict__["__name__"] = function.__name__.strip("_")
    return step


def type_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch of Spark's to our types: its texts may be larger, its columns NOT NULL."""
    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
