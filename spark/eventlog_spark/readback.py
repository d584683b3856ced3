"""Read-backs from DataFrames of tables: what the frames are, and their columns as read-backs ask
for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eventlog.convert.snapshot import list_wanted_columns
from eventlog.core.errors import UsageError
from eventlog.core.schema import Catalog
from eventlog.core.table_names import write_name
from eventlog_spark.deciding import Name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def names_of_tables(catalog: Catalog) -> dict[str, Name]:
    """Index tables and child tables by `table` and `schema.table`, folded as by the catalog."""
    known: dict[str, Name] = {}
    for number, table in enumerate(catalog):
        names: list[tuple[str, int | None]] = [(table.name, None)]
        names += [(child.name, at) for at, child in enumerate(table.children)]
        for name, child in names:
            # Without its schema a name means the first table that has it.
            known.setdefault(catalog.fold(name), (number, child))
            if table.schema is not None:
                known[catalog.fold(f"{table.schema}.{name}")] = (number, child)
                known[catalog.fold(write_name(table.schema, name))] = (number, child)
    return known


def tables_of(frames: Mapping[str, DataFrame], catalog: Catalog) -> dict[Name, DataFrame]:
    """Index the frames by their tables, with only the columns for read-backs."""
    known = names_of_tables(catalog)
    unknown = [name for name in frames if catalog.fold(name) not in known]
    if unknown:
        raise UsageError(
            f"A frame is given for {unknown[0]}, and the schema has no such table.",
            hint="Name it as the schema does, or take it out of `rows`.",
        )
    by_table = {known[catalog.fold(name)]: frame for name, frame in frames.items()}
    return {name: _choose_columns(frame, catalog, *name) for name, frame in by_table.items()}


def _choose_columns(frame: DataFrame, catalog: Catalog, index: int, child: int | None) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

    spelled = {catalog.fold(name): name for name in frame.columns}
    columns = list_wanted_columns(catalog.tables[index], child)
    missing = [name for name in columns if catalog.fold(name) not in spelled]
    if missing:
        raise UsageError(
            f"The frame of {catalog.tables[index].name} has no column {', '.join(missing)}.",
            hint="Add it to the frame, or take it out of the schema.",
        )
    return frame.select(*[F.col(f"`{spelled[catalog.fold(name)]}`").alias(name) for name in columns])
