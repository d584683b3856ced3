"""The rules as DataFrames: events in, changes and outcomes out; Spark reads, orders and writes.

    events     ten columns by name, whatever their types, as rows of a log
               (mapInArrow only where types differ)
    decide     rows to the bucket of their objects, whole objects through the step
               (mapInArrow, repartition, mapInArrow)

What formats write of changes is in `outputs`. Nothing here touches a file or collects a row, so
input and output are wherever Spark can read and write. Every frame is lazy, as Spark's are: changes
and outcomes come from one pass of the rules when `Decisions.results` is persisted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.collecting import END
from eventlog.convert.forms import form_of
from eventlog.convert.inputs import places_of
from eventlog.convert.rows import NUMBERS, OUTCOMES, PROBLEM, shape_rows, times_in_utc
from eventlog.convert.rows import ROWS as EVENTS
from eventlog.convert.settings import (
    ChangeRows,
    Conversion,
    DatabaseRows,
    FilesInput,
    SnapshotRows,
)
from eventlog.convert.step import CHANGE, DUPLICATE, ENDING, result_schema
from eventlog.convert.to_changes import CHANGES
from eventlog.core.errors import UsageError
from eventlog.core.rules import Options
from eventlog.core.rules.meaning import NOT_POSITIVE
from eventlog.core.schema import Catalog
from eventlog.policies.steps import Steps
from eventlog.sql.clocks import UTC, zone_of
from eventlog.sql.names import CONTEXT, STANDARD, TRANSACTION
from eventlog_spark.cutting import MOST_BUCKETS
from eventlog_spark.deciding import Name, decide_rows
from eventlog_spark.exchange import (
    NAMING,
    SCHEMA,
    TABLES,
    chain_steps,
    find_contested,
    scatter_numbers,
    scatter_rows,
    scatter_table,
)
from eventlog_spark.readback import tables_of
from eventlog_spark.types import ddl, name_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

STATUSES: Final = ("S", "W", "E", "F")


class Source(Struct, frozen=True):
    """A frame of rows of a log; or of what a task can `read` as such rows."""

    frame: DataFrame
    read: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]] | None = None

    def map_rows(self, step: Callable[..., Any], schema: Any) -> DataFrame:
        """Run a step on the rows, as soon as they are read: Spark makes no rows of its own of them."""
        if self.read is None:
            return self.frame.mapInArrow(step, schema)
        return self.frame.mapInArrow(name_function(chain_steps, self.read, step), schema)


class Decisions(Struct, frozen=True, kw_only=True):
    """What became of events. `catalog` are the tables as they look behind the policies, for
    formats.
    """

    results: DataFrame
    catalog: Catalog | None = None

    @property
    def changes(self) -> DataFrame:
        """Return one row a change: position, object, `op`, and `edits` with old and new values.

        With whole transactions, its transaction's end too.
        """
        changes = self.results.where(f"kind = '{CHANGE}'")
        if TRANSACTION not in self.results.columns:
            return changes.select("op", *CHANGES.names)
        from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

        # Each bucket says how far a transaction reaches in it.
        endings = self.results.where(f"kind = '{ENDING}'")
        ends = endings.groupBy(TRANSACTION).agg(F.max("position").alias(END))
        # A change of no known transaction ends where it stands.
        end = F.coalesce(END, F.col("position")).alias(END)
        return changes.join(ends, TRANSACTION, "left").select("op", *CHANGES.names, end)

    @property
    def outcomes(self) -> DataFrame:
        """Return `position`, `status`, `reason` and `note` for each event; one for repeated
        rows.
        """
        others = f"kind NOT IN ('{CHANGE}', '{DUPLICATE}', '{ENDING}')"
        return self.results.where(others).select(*OUTCOMES.names)

    def observed(self, metrics: str | Observation = "eventlog") -> Decisions:
        """Count what the first action meets, for an `Observation` or for listeners that read metrics by this name.

        They are `rows`, `changes`, and the rows of each status.
        """
        from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

        is_outcome = f"kind NOT IN ('{CHANGE}', '{DUPLICATE}', '{ENDING}')"
        counts = {"rows": is_outcome, "changes": f"kind = '{CHANGE}'"}
        counts |= {status: f"{is_outcome} AND status = '{status}'" for status in STATUSES}
        first, *others = [F.count_if(F.expr(condition)).alias(name) for name, condition in counts.items()]
        return replace(self, results=self.results.observe(metrics, first, *others))

    def persisted(self) -> Decisions:
        """Keep the results, so rules run once however often changes and outcomes are asked for."""
        return replace(self, results=self.results.persist())


def events(frame: DataFrame, *, clock: str = UTC, columns: Sequence[str] = ()) -> DataFrame:
    """Take the rows of a log from a frame with the ten columns, of any types in any order.

    Other columns are left out. `clock` is the zone of `event_time`, as in the configuration, and
    `columns` are the frame's names for the ten, in the order of the standard names. A value unfit
    as a number becomes the row's problem, and the rules tell it as its outcome.
    """
    from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

    if columns:
        frame = _rename_columns(frame, columns)
    places = places_of(frame.columns, "The frame")
    # In backticks a name with a point is one name.
    own_columns = [F.col(f"`{frame.columns[at]}`").alias(name) for name, at in places.items()]
    if TRANSACTION not in places:
        own_columns.append(F.lit(None).cast("bigint").alias(TRANSACTION))
    if CONTEXT not in places:
        own_columns.append(F.lit(None).cast("string").alias(CONTEXT))
    chosen = frame.select(*own_columns).select(*STANDARD, TRANSACTION, CONTEXT)
    usual = all(kind in (_INTEGERS if name in NUMBERS else _TEXTS) for name, kind in chosen.dtypes)
    if not usual or zone_of(clock) is not None:
        return chosen.mapInArrow(name_function(_shape_rows, clock), ddl(EVENTS))
    # Without a way through Python, which costs more than all else that is done to the rows here.
    number = F.col("record_id")
    misfit = F.when(number.isNull(), F.lit("record_id is NULL; it must be a number.")).when(
        number <= 0, F.format_string(NOT_POSITIVE.replace("{}", "%s"), number)
    )
    typed = []
    for name in chosen.columns:
        kind = "bigint" if name in NUMBERS else "string"
        typed.append(F.col(name).cast(kind).alias(name))
    return chosen.select(*typed, misfit.alias(PROBLEM))


def decide(
    events: DataFrame,
    catalog: Catalog | None = None,
    *,
    rows: str | Mapping[str, DataFrame] | None = None,
    policies: Steps = (),
    options: Options | None = None,
    unique: bool = False,
    transactions: Literal["mixed", "whole"] = "mixed",
    who: bool = False,
) -> Decisions:
    """Decide events by the rules of the publisher and of `eventlog convert`.

    `rows` answers read-backs: the URL of a database, or frames of tables by their names. `unique`
    promises one object for each record_id, as a primary key does, and saves the search for others.
    For formats with whole `transactions`, changes name theirs, and where it ends. With `who` changes say who is
    behind them, and those of two people are never one.
    """
    read_back: DatabaseRows | SnapshotRows | None = None
    tables: dict[Name, DataFrame] = {}
    if isinstance(rows, str):
        read_back = DatabaseRows(url=rows)
    elif rows is not None:
        if catalog is None:
            message = "`rows` needs to know tables, columns and keys."
            raise UsageError(message, hint="Give `decide` a catalog.")
        tables = tables_of(rows, catalog)
        # The rows come as blobs; that there are some is all that a task needs to know.
        read_back = SnapshotRows(folder=Path())
    conversion = Conversion(
        input=FilesInput(places=()),
        destination=Path(),
        catalog=catalog,
        options=options or Options(),
        format=ChangeRows(),
        read_back=read_back,
        steps=policies,
        transactions=transactions,
        who=who,
    )
    buckets, sources = _buckets(events), [Source(events)]
    blobs = blobs_of(sources, catalog, buckets, tables, tasks=0)
    if not unique:
        blobs = blobs.unionAll(conflicts_of(sources, catalog, buckets))
    step = name_function(decide_rows, conversion, tuple(tables))
    schema = result_schema(form_of(conversion), gathers=conversion.gathers)
    results = blobs.repartition("bucket").mapInArrow(step, ddl(schema))
    return Decisions(results=results, catalog=conversion.output_catalog)


def blobs_of(
    events: Sequence[Source],
    catalog: Catalog | None,
    buckets: int,
    tables: Mapping[Name, DataFrame],
    *,
    tasks: int,
) -> DataFrame:
    """Bring events, and rows of tables for their read-backs, to the buckets of their objects.

    So many `tasks` get the notes about the record_ids.
    """
    scatter_them = name_function(scatter_rows, catalog, buckets, tasks)
    blobs = _union([source.map_rows(scatter_them, SCHEMA) for source in events])
    for kind, ((table, child), frame) in enumerate(tables.items(), TABLES):
        assert catalog is not None
        scatter = name_function(scatter_table, catalog, table, child, kind, buckets)
        blobs = blobs.unionAll(frame.mapInArrow(scatter, SCHEMA))
    return blobs


def by_task(blobs: DataFrame, tasks: int) -> DataFrame:
    """Bring blobs to the tasks of their buckets."""
    from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

    return blobs.repartitionById(tasks, F.expr(f"bucket % {tasks}"))


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda frame, other: frame.unionAll(other), frames)


def conflicts_of(
    events: Sequence[Source],
    catalog: Catalog | None,
    buckets: int,
    *,
    by_bucket: bool = False,
) -> DataFrame:
    """Find record_ids with several objects, and bring them to these objects' buckets.

    The rules cannot see them, object by object. There are as many tasks as Spark has for any
    exchange, or one for each bucket.
    """
    scatter = name_function(scatter_numbers, catalog, buckets)
    # Of files that Spark reads, not more columns than these.
    named = [source if source.read is not None else Source(source.frame.select(*NAMING.names)) for source in events]
    numbers = _union([source.map_rows(scatter, SCHEMA) for source in named])
    if by_bucket:
        together = numbers.repartitionById(buckets, "bucket")
    else:
        together = numbers.repartition("bucket")
    return together.mapInArrow(name_function(find_contested, buckets), SCHEMA)


BUCKET_BYTES: Final = 2_000_000
"""Bytes of input, as it lies there and is packed perhaps, for which a bucket is worth its tasks."""


def _buckets(events: DataFrame) -> int:
    """Return a power of two: as many buckets as the input is worth, and at most several for each task of Spark's."""
    tasks = int(events.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    most = min(MOST_BUCKETS, 2 << tasks.bit_length())
    return min(most, 1 << (_size(events) // BUCKET_BYTES).bit_length())


def _size(events: DataFrame) -> int:
    """Return Spark's estimate of the input's bytes; the largest integer if there is none."""
    plan = getattr(events, "_jdf", None)
    if plan is None:
        return sys.maxsize
    return int(str(plan.queryExecution().optimizedPlan().stats().sizeInBytes()))


_INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
_TEXTS: Final = ("string", "void")


def _rename_columns(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Select the ten columns, and transaction and context, under their standard names."""
    from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

    if len(columns) != len(STANDARD):
        what = f"name what the frame has for {', '.join(STANDARD)}, in this order"
        raise UsageError(f"`columns` has {len(columns)} names; {what}.")
    # Spark does not tell letters apart by their case.
    known = {name.casefold() for name in frame.columns}
    missing = [name for name in columns if name.casefold() not in known]
    if missing:
        raise UsageError(f"The frame has no column {', '.join(missing)}.", hint="Correct `columns`.")
    renamed: list[Any] = []
    for name, standard in zip(columns, STANDARD, strict=True):
        renamed.append(F.col(f"`{name}`").alias(standard))
    renamed += [F.col(name) for name in (TRANSACTION, CONTEXT) if name in known]
    return frame.select(renamed)


def _shape_rows(clock: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    zone = zone_of(clock)
    for batch in batches:
        columns = {name: batch.column(name) for name in batch.schema.names}
        yield times_in_utc(shape_rows(columns), zone)
