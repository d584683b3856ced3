"""Numbers for changes in the order of their positions, as expressions of Spark: each row's place,
and its change_seq. Where transactions are whole, the order is that of their ends, and messages are
counted in them.

A window over all rows would bring them into one task. So positions are cut into ranges of equal
width: how many changes each has, and the latest of their times, is a short list that one task adds
up; within a range a window counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from eventlog.convert.collecting import END
from eventlog.convert.forms import STAMP
from eventlog.convert.transactions import LAST, PLACE
from eventlog.qlik.change_seq import ChangeSeq
from eventlog.sql.names import TRANSACTION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NUMBER: Final = "number"
"""A change's place among all of them, from 1."""

SEQUENCE: Final = "sequence"
"""A change's change_seq."""

RANGE_BITS: Final = 16
"""A range is 65,536 positions wide."""


def number_rows(written: DataFrame, after: str = "") -> DataFrame:
    """Number rows by `position` and, if they have one, `stamp`; continue `after` a change_seq.

    Rows with an `end` are in the order of it.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

    start = ChangeSeq.parse(after)
    stamp = F.col(STAMP) if STAMP in written.columns else F.lit(start.time)
    order = [END, "position"] if END in written.columns else ["position"]
    placed = written.withColumn("row_range", F.shiftright(order[0], RANGE_BITS))
    # All in one task: there is only a row for each range.
    together = Window.partitionBy(F.lit(0))
    former = together.orderBy("row_range").rowsBetween(Window.unboundedPreceding, -1)
    count, latest = F.count(F.lit(1)).alias("count"), F.max(stamp).alias("latest")
    counted = placed.groupBy("row_range").agg(count, latest)
    first = counted.select(
        "row_range",
        F.coalesce(F.sum("count").over(former), F.lit(0)).alias("before"),
        F.greatest(F.max("latest").over(former), F.lit(start.time)).alias("since"),
    )
    within = Window.partitionBy("row_range").orderBy(*order)
    upto_here = within.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    number = F.col("before") + F.row_number().over(upto_here.orderBy(*order))
    # A change_seq never goes back, though a later row may have an earlier time.
    time = F.greatest(F.col("since"), F.max(stamp).over(upto_here))
    digits = F.lpad((number + F.lit(start.number)).cast("string"), 19, "0")
    rows = placed.join(first, "row_range").select(
        *placed.columns, number.alias(NUMBER), time.alias("time"), digits.alias("digits")
    )
    return rows.withColumn(SEQUENCE, F.concat("time", "digits")).drop("row_range", "time", "digits")


def count_messages(written: DataFrame) -> DataFrame:
    """Number messages within their transactions, and flag the last of each.

    Those of a full load, without a `tail`, have neither.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

    # So that not all of these meet in one task.
    alone = F.when(F.col(TRANSACTION).isNull(), F.col("position"))
    together = Window.partitionBy(TRANSACTION, alone)
    upto = together.orderBy("position").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    counts = F.col(TRANSACTION).isNotNull() & F.col("tail").isNotNull()
    number = F.sum(F.when(counts, 1)).over(upto)
    total = F.sum(F.when(counts, 1)).over(together)
    numbered = written.withColumn(PLACE, F.when(counts, number))
    return numbered.withColumn(LAST, F.when(counts, number == total))
