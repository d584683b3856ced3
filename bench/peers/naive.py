"""The Spark job that one would write in an hour: JDBC, groupBy, and a Python function that writes XML for each object.

python -m bench.peers.naive JAR      then orders on standard input, as bench.sparkprocess takes them
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape

import msgspec

from bench.sparkprocess import Answer, Order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER: Final = "local[2]"
ELEMENTS: Final = {1: ("add", "add-attr"), 2: ("modify", "modify-attr"), 4: ("delete", "")}
DEFAULTS: Final = {"spark.sql.adaptive.enabled": "true"}
"""What Spark does by itself, and our own session does not."""
WAITING: Final = (
    "(SELECT record_id, event_type, table_name, table_key, column_name, old_value, new_value FROM event_log"
    " WHERE status = 'N') AS waiting"
)


def main(jar: str) -> None:
    """Does what stands on standard input until it ends."""
    from eventlog_spark.cluster import Cluster, session

    with session(Cluster(master=MASTER, conf={"spark.jars": jar, **DEFAULTS})) as spark:
        for line in sys.stdin.buffer:
            convert(spark, msgspec.json.decode(line, type=Order))
            print(msgspec.json.encode(Answer(rows=0, cpu_seconds=0.0, worker_bytes=0)).decode(), flush=True)


def convert(spark: SparkSession, order: Order) -> None:
    """Groups the waiting rows by object and writes a line of XML for each of its changes."""
    from pyspark.sql import functions

    row = functions.struct("record_id", "event_type", "column_name", "old_value", "new_value")
    written = functions.udf(xml, "string")
    frame = spark.read.jdbc(jdbc(order.source), WAITING, properties={"driver": "org.postgresql.Driver"})
    objects = frame.groupBy("table_name", "table_key").agg(
        functions.sort_array(functions.collect_list(row)).alias("rows")
    )
    told = objects.select(written("table_name", "table_key", "rows").alias("value"))
    told.write.mode("overwrite").text(str(Path(order.destination or "")))


def jdbc(url: str) -> str:
    """The URL as Java's driver has it."""
    from sqlalchemy import make_url

    place = make_url(url)
    return f"jdbc:postgresql://{place.host}:{place.port}/{place.database}?user={place.username}"


def xml(table: str, key: str, rows: Any) -> str:
    """An element for each stretch of rows of one kind; without escapes in names, read-backs, or any of the finer rules."""
    found: list[str] = []
    kind, attributes = 0, list[str]()
    for row in rows:
        if attributes and row.event_type != kind:
            found.append(_element(table, key, kind, attributes))
            attributes = []
        kind = row.event_type
        attributes.append(_attribute(ELEMENTS[kind][1], row))
    return "\n".join([*found, _element(table, key, kind, attributes)])


def _element(table: str, key: str, kind: int, attributes: list[str]) -> str:
    name = ELEMENTS[kind][0]
    association = f"<association>{escape(key)},table={table},schema=indirect</association>"
    return f'<{name} class-name="{table}">{association}{"".join(attributes)}</{name}>'


def _attribute(name: str, row: Any) -> str:
    if not name:
        return ""
    new = f'<value type="string">{escape(row.new_value or "")}</value>'
    if row.event_type == 1:
        return f'<{name} attr-name="{row.column_name}">{new}</{name}>'
    old = f'<remove-value><value type="string">{escape(row.old_value or "")}</value></remove-value>'
    return f'<{name} attr-name="{row.column_name}">{old}<add-value>{new}</add-value></{name}>'


if __name__ == "__main__":
    main(sys.argv[1])
