"""What formats write of changes, as DataFrames: XDS documents, change tables, messages; Spark's
writers do the rest.

    documents       each change as a whole document (mapInArrow)
    change_tables   rows with header columns, a frame for each table (mapInArrow, numbers, mapInArrow)
    messages        key, value and topic, as Spark's Kafka writer takes (mapInArrow, numbers)

The formats are those of the publisher and of `eventlog convert`, and so are the numbers: change_seq
counts all changes in the order of their positions, whatever their table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.collecting import END
from eventlog.convert.forms import ROUTE, STAMP, Form, with_transaction
from eventlog.convert.settings import TableFiles
from eventlog.convert.to_change_tables import PackedRows, TableForm
from eventlog.convert.to_changes import changes_of
from eventlog.convert.to_messages import PackedMessages, writer_of
from eventlog.core.errors import ExpressionError, UsageError
from eventlog.core.model import Refusal
from eventlog.core.schema import Catalog
from eventlog.qlik.change_tables.format import ChangeTableFormat, Gathered
from eventlog.qlik.change_tables.partitions import Partitions
from eventlog.qlik.change_tables.rows import folder_of
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.change_tables.tables import ChangeTable
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import sequence_time
from eventlog.sinks.change_files.arrow import arrow_columns, arrow_schema
from eventlog.xds.write import XdsFormat
from eventlog_spark.numbering import SEQUENCE, count_messages, number_rows
from eventlog_spark.types import ddl, name_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DOCUMENTS: Final = pa.schema(
    [
        ("position", pa.int64()),
        ("id", pa.string()),
        ("route", pa.string()),
        ("body", pa.string()),
        ("note", pa.string()),
    ]
)
NOTE: Final = pa.field("note", pa.string())
Transactions = Literal["mixed", "whole"]


class ChangeTableFrames(Struct, frozen=True, kw_only=True):
    """Change tables as frames. `written` are the rows of all of them, packed, with their
    numbers.
    """

    written: DataFrame
    notes: DataFrame
    """`position` and `note` of what cannot be written, or not with all of its values."""
    catalog: Catalog
    settings: ChangeTableSettings
    who: bool = False

    def tables(self, route: str = "") -> dict[str, DataFrame]:
        """Return a frame for each table by the name of its change table; with a `route`, of the
        rows a policy sends there.
        """
        frames = {}
        for number, table in enumerate(self.catalog):
            try:
                made = ChangeTable(table, self.settings, route=route, who=self.who)
            except ExpressionError:
                # Its changes were refused, each with the reason.
                continue
            is_own = self.written["table"] == number
            own_rows = self.written.where(is_own & (self.written[ROUTE] == route))
            form = ChangeTableFormat(settings=self.settings, who=self.who)
            unpack = name_function(_unpack_table, made.columns, self.catalog, form)
            name = folder_of(made.table, made.target)
            frames[name] = own_rows.mapInArrow(unpack, ddl(arrow_schema(made.columns)))
        return frames

    def last(self) -> str:
        """Find the last change_seq, for the next call to continue; empty without changes."""
        # The highest of no rows is NULL.
        return str(self.written.agg({SEQUENCE: "max"}).collect()[0][0] or "")

    def persisted(self) -> ChangeTableFrames:
        """Keep the changes, so they are written once however many tables there are."""
        return replace(self, written=self.written.persist())


class MessageFrames(Struct, frozen=True, kw_only=True):
    """Messages as a frame: `position`, `topic`, `key`, `value`."""

    frame: DataFrame
    notes: DataFrame
    """`position` and `note` of what cannot be written, or not with all of its values."""
    catalog: Catalog
    settings: MessageSettings

    def metadata(self, sequence: str) -> list[tuple[str, bytes | None, bytes | None]]:
        """Return topic, key and value of the messages that describe the tables, at the time of a
        change_seq. Send them first.
        """
        messages = {}
        for table in self.catalog:
            writer = writer_of(table, self.settings)
            if writer is None or writer.structure is None:
                continue
            structure = writer.structure
            if structure.schema_id not in messages:
                value = structure.message(structure.version, sequence_time(sequence))
                messages[structure.schema_id] = (structure.topic, structure.key, value)
        return [*messages.values()]


def documents(
    changes: DataFrame,
    catalog: Catalog | None = None,
    *,
    format: str = "xds",  # noqa: A002  # Spark's word
    **settings: Any,
) -> DataFrame:
    """Write each change as a whole document, in no order: `position`, `id`, `route`, `body`, and a
    `note` on an unfit value.

    A change the format cannot write has no body. `settings` are those of `eventlog.xds.XdsFormat`.
    """
    if format != "xds":
        message = f"There is no format {format} for documents; there is xds."
        raise UsageError(message, hint="Or take change_tables or messages.")
    # A document for each change, whatever the settings say.
    writer = XdsFormat(**{**settings, "batch_size": 1})
    return changes.mapInArrow(name_function(_documents, writer, catalog), ddl(DOCUMENTS))


def change_tables(
    changes: DataFrame,
    catalog: Catalog,
    settings: ChangeTableSettings | None = None,
    *,
    after: str = "",
    transactions: Transactions = "mixed",
    who: bool = False,
) -> ChangeTableFrames:
    """Make the rows of change tables; numbers continue `after` the last change_seq there is.

    Whole `transactions` have numbers one after the other. With `who` rows have header columns with who is behind them.
    """
    settings = settings or ChangeTableSettings()
    form = TableForm(TableFiles(settings=settings, who=who), dict(enumerate(catalog)))
    written = _write_changes(changes, form, catalog, transactions)
    rows = number_rows(written.where(f"{STAMP} IS NOT NULL").drop("note"), after)
    return ChangeTableFrames(written=rows, notes=_notes(written), catalog=catalog, settings=settings, who=who)


def messages(
    changes: DataFrame,
    catalog: Catalog,
    settings: MessageSettings | None = None,
    *,
    after: str = "",
    transactions: Transactions = "mixed",
    who: bool = False,
) -> MessageFrames:
    """Make a message for each change, and one more for each tombstone. Numbers continue `after` a
    changeSequence.

    Whole `transactions` have numbers one after the other, and their messages are counted. With `who` the frame has
    `headers`, as Spark's Kafka writer takes them.
    """
    settings = settings or MessageSettings()
    if settings.mode == "registry":
        hint = "eventlog convert --kafka asks the registry; here choose bare, envelope or metadata."
        raise UsageError("A DataFrame of messages has no schema registry that gives numbers.", hint=hint)
    whole = transactions == "whole"
    form = PackedMessages(settings, dict(enumerate(catalog)), open_=whole, headed=who)
    written = _write_changes(changes, form, catalog, transactions)
    rows = number_rows(written.where(f"{STAMP} IS NOT NULL").drop("note"), after)
    if whole:
        with_places = count_messages(rows)
        rows = with_places.mapInArrow(name_function(_close_messages, form), with_places.schema)
    return MessageFrames(
        frame=_as_messages(rows, catalog, settings, ["headers"] if who else []),
        notes=_notes(written),
        catalog=catalog,
        settings=settings,
    )


def _as_messages(rows: DataFrame, catalog: Catalog, settings: MessageSettings, more: list[str]) -> DataFrame:
    """Give messages their numbers; `more` are further columns. A row of a full load has none: its value is whole."""
    from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

    # Without a tail the first is NULL.
    value = F.coalesce(F.concat("head", F.encode(SEQUENCE, "utf-8"), "tail"), F.col("head"))
    values = F.array(value)
    if settings.tombstones:
        both = F.array(value, F.lit(None).cast("binary"))
        values = F.when(F.col("deleted") & F.col("key").isNotNull(), both).otherwise(values)
    topic = F.lit(None).cast("string")
    for number, table in enumerate(catalog):
        writer = writer_of(table, settings)
        if writer is not None:
            own_topic = F.lit(writer.shape.topic)
            topic = F.when(F.col("table") == number, own_topic).otherwise(topic)
    topic = F.when(F.col(ROUTE) == "", topic).otherwise(F.col(ROUTE)).alias("topic")
    return rows.select("position", SEQUENCE, topic, "key", F.explode(values).alias("value"), *more)


def _notes(written: DataFrame) -> DataFrame:
    return written.where("note IS NOT NULL").select("position", "note")


def _write_changes(
    changes: DataFrame,
    form: Form,
    catalog: Catalog,
    transactions: Transactions,
) -> DataFrame:
    """Write changes in a form; add transaction and end if transactions are whole."""
    if transactions == "whole" and END not in changes.columns:
        message = "These changes do not say where their transactions end."
        raise UsageError(message, hint='Ask `decide` for transactions="whole".')
    schema = form.schema.append(NOTE)
    if transactions == "whole":
        schema = pa.schema([*with_transaction(form.schema), (END, pa.int64()), NOTE])
    return changes.mapInArrow(name_function(_render, form, catalog, schema), ddl(schema))


def _close_messages(form: PackedMessages, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give messages their numbers within their transactions."""
    for batch in filter(len, batches):
        columns = {name: batch.column(name) for name in batch.schema.names}
        heads, tails = form.closed(batch)
        columns["head"] = pa.array(heads, columns["head"].type)
        columns["tail"] = pa.array(tails, columns["tail"].type)
        yield pa.RecordBatch.from_pydict(columns)


def _render(
    form: Form,
    catalog: Catalog,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Write changes in a form; a refused one becomes a row with only a note."""
    rendering = form.rendering(catalog)
    whole = END in schema.names
    if whole:
        rendering = rendering.in_transactions()
    for batch in batches:
        notes: list[dict[str, object]] = []
        positions = batch.column("position")
        for position, change in zip(positions.to_pylist(), changes_of(batch), strict=True):
            rendering.take(change, position)
            notes += [{"position": position, "note": refusal.note} for refusal in rendering.refused]
            # At once, for a note stands at the position of its change.
            rendering.refused.clear()
        rows = rendering.rendered()
        if whole:
            # A change may be several rows or none, so the ends are looked up by the positions.
            places = pc.index_in(rows.column("position"), value_set=positions)
            rows = rows.append_column(END, batch.column(END).take(places))
        yield rows.append_column("note", pa.nulls(len(rows), pa.string())).cast(schema)
        if notes:
            yield pa.RecordBatch.from_pylist(notes, schema)


def _unpack_table(
    columns: Any,
    catalog: Catalog,
    form: ChangeTableFormat,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the finished rows of one change table."""
    packed = PackedRows(form, dict(enumerate(catalog)))
    every = form.settings.partition_every
    partitions = Partitions(every, form.settings.base()) if every else None
    for batch in batches:
        if not len(batch):
            continue
        gathered = Gathered(partitions)
        sequences = batch.column(SEQUENCE).to_pylist()
        for written, sequence in zip(packed.written(batch), sequences, strict=True):
            gathered.take_rows(written, sequence)
        for block in gathered.document().blocks:
            yield from arrow_columns(columns, block.cells).to_batches()


def _documents(
    form: XdsFormat,
    catalog: Catalog | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    write = form.writer(catalog)
    for batch in batches:
        rows: list[dict[str, object]] = []
        positions = batch.column("position").to_pylist()
        for position, change in zip(positions, changes_of(batch), strict=True):
            row: dict[str, object] = {}
            # Both, where one of its values cannot be written and the others are.
            for item in write((change,)):
                if isinstance(item, Refusal):
                    row["note"] = item.note
                else:
                    [document] = form.bind([item], whole=True)
                    row |= {"id": document.id, "body": document.body.decode()}
            if row:
                rows.append({"position": position, "route": change.route, **row})
        yield pa.RecordBatch.from_pylist(rows, schema=DOCUMENTS)
