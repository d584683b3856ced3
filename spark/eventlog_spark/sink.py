"""The sink `eventlog`: rows of a log that a stream brings become what `eventlog convert` makes of
them, batch after batch.

    stream = rows.writeStream.format("eventlog").option("out", "sent/")
    stream.option("checkpointLocation", "checkpoint/").start()

    <out>/_rows/batch-00000007     the rows of the batch in hand: a batch that comes again has the
                                   same ones
    <out>/batch-00000007           what `convert` makes of them, with `_SUCCESS`
    <out>/_stream.json             whose stream it is, its last batch that is done, and the
                                   change_seq to go on from

Law: Spark repeats a batch until its commit has returned, and that returns after the note. So each
row is converted once, and what is sent elsewhere is sent by one conversion that is taken up again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import replace
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from eventlog.core.errors import ConfigError, DataError, SinkError, UsageError
from eventlog.core.secrets import visible
from eventlog.core.suggest import did_you_mean
from eventlog.durable_files import flush, make_folder, write_file
from eventlog.sources.stream.claim import Claim
from eventlog_spark.faults import travelling
from eventlog_spark.source import OUT

if TYPE_CHECKING:
    from eventlog.convert.settings import Conversion

KNOWN: Final = (
    *("to", "config", "output", "no-policies", "schema", "database", "snapshot"),
    *("format", "metadata-topic", "to-database", "to-lake", "kafka"),
    *("part-events", "coalesce", "jobs"),
)
"""The words of `eventlog convert` that are options here."""

OF_SPARK: Final = ("checkpointlocation", "path", "queryname")
ROWS: Final = "_rows"
NOTE: Final = "_stream.json"
LOCK: Final = "_lock"
NEW: Final = ".new-"
"""How the names of files begin that belong to no batch yet."""

QUERY: Final = "sql.streaming.queryId"
"""Where Spark tells its tasks which stream they work for; the same whenever it goes on from its
checkpoint.
"""


class SinkOptions(Struct, frozen=True, kw_only=True):
    """Where the output goes, and the words of the conversion."""

    out: Path
    words: tuple[str, ...]


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    """The options as Spark hands them over, all text; ConfigError names the one that is wrong."""
    given = {name.lower().replace("_", "-"): text for name, text in options.items()}
    given = {name: text for name, text in given.items() if name not in OF_SPARK}
    out = given.pop(OUT, "")
    unknown = sorted(given.keys() - set(KNOWN))
    if unknown:
        hint = did_you_mean(unknown[0], (OUT, *KNOWN))
        raise ConfigError(f"The sink has no option {unknown[0]}. {hint}")
    if not out or "://" in out:
        hint = "It gets the outcomes of each batch, and the files of formats."
        raise ConfigError(f"The option out is {visible(out)!r}, and must name a folder.", hint=hint)
    words = []
    for name, text in given.items():
        # Options of Spark's are texts; on a command line a word is there or not.
        if text == "true":
            words.append(f"--{name}")
        elif text != "false":
            words.append(f"--{name}={text}")
    return SinkOptions(out=Path(out).absolute(), words=tuple(words))


@dataclass
class Brought(WriterCommitMessage):
    """What a task has brought: a file of rows, none where it had no rows; and for which stream."""

    query: str
    file: str | None


class LogSink(DataSourceStreamArrowWriter):
    """The data source as the end of a stream."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Brought:
        """In a task: the rows as a file in a folder that every node mounts."""
        from pyspark import TaskContext

        with travelling():
            context = TaskContext.get()
            query = ""
            if context is not None:
                query = context.getLocalProperty(QUERY) or ""
            batches = [batch for batch in iterator if len(batch)]
            if not batches:
                return Brought(query, None)
            body = BytesIO()
            pq.write_table(pa.Table.from_batches(batches), body)
            name = f"{NEW}{uuid4().hex}.parquet"
            make_folder(self._options.out / ROWS)
            write_file(self._options.out / ROWS / name, body.getvalue())
            return Brought(query, name)

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803  # Spark calls it so
    ) -> None:
        """In the driver: converts the rows that tasks have brought."""
        # A task that failed has brought None.
        brought = [message for message in messages if isinstance(message, Brought)]
        with travelling():
            if brought:
                files = [message.file for message in brought if message.file is not None]
                StreamFolder(self._options).take(batchId, brought[0].query, files)

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803  # likewise
    ) -> None:
        """In the driver: the batch comes again."""
        for message in messages:
            if isinstance(message, Brought) and message.file is not None:
                (self._options.out / ROWS / message.file).unlink(missing_ok=True)


class StreamNote(Struct, frozen=True, kw_only=True):
    """How far a stream is."""

    query: str
    batch: int = -1
    change_seq: str = ""


class StreamFolder:
    """The folder of a stream's output."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._out = options.out

    def take(self, number: int, query: str, files: Iterable[str]) -> None:
        """Converts a batch, unless that was done before Spark could note it."""
        make_folder(self._out / ROWS)
        claim = Claim(self._out / LOCK)
        if not claim.take():
            message = f"Another stream writes into {self._out}."
            raise SinkError(message, hint="Wait for it, or choose another folder.")
        try:
            note = self._note(query)
            if number > note.batch:
                kept = self._kept(f"batch-{number:08d}", files)
                after = self._converted(kept, note.change_seq)
                # Before the rows go: a batch that comes again finds either them or the note.
                self._write(StreamNote(query=query, batch=number, change_seq=after))
                shutil.rmtree(kept)
            # What tasks have brought for a try of the batch that failed.
            for left in (self._out / ROWS).glob(f"{NEW}*"):
                left.unlink()
        finally:
            claim.leave()

    def _note(self, query: str) -> StreamNote:
        """How far this stream is; the rows of another one would be passed over."""
        file = self._out / NOTE
        if not file.exists():
            if {entry.name for entry in self._out.iterdir()} - {ROWS, LOCK}:
                raise UsageError(f"{self._out} is not empty.", hint="Choose another folder.")
            note = StreamNote(query=query)
            self._write(note)
            return note
        try:
            note = msgspec.json.decode(file.read_bytes(), type=StreamNote)
        except msgspec.DecodeError as error:
            raise DataError(f"{file} cannot be read: {error}.", hint="Restore it from a backup.") from None
        if note.query != query:
            hint = "Choose another folder; or continue from its own checkpoint."
            raise UsageError(f"{self._out} has what another stream brought.", hint=hint)
        return note

    def _write(self, note: StreamNote) -> None:
        write_file(self._out / NOTE, msgspec.json.encode(note))

    def _kept(self, name: str, files: Iterable[str]) -> Path:
        """The folder of the batch's rows: those of its first time, if it comes again."""
        rows = self._out / ROWS
        kept, making = rows / name, rows / f".{name}"
        if not kept.exists():
            shutil.rmtree(making, ignore_errors=True)
            make_folder(making)
            for number, file in enumerate(files):
                (rows / file).rename(making / f"part-{number:05d}.parquet")
            flush(making)
            making.rename(kept)
            flush(rows)
        return kept

    def _converted(self, kept: Path, after: str) -> str:
        """Has the rows converted unless they are; the last change_seq then."""
        from eventlog.convert.again import complete
        from eventlog.convert.local import convert

        # A number may turn out to be nobody's, so that a batch has no rows.
        if not any(kept.iterdir()):
            return after
        conversion, jobs = self._conversion(kept)
        conversion = replace(conversion, after=after)
        summary = complete(conversion) or convert(conversion, jobs=jobs)
        return summary.change_seq or after

    def _conversion(self, kept: Path) -> tuple[Conversion, int]:
        """What the command of these words would do with the rows, and its processes."""
        import click

        from eventlog.convert.command import files
        from eventlog.convert.ordering import conversion_of, order_of

        words = [str(kept), "--out", str(self._out / kept.name), "--engine", "local"]
        words += self._options.words
        # The command itself reads them, so that options mean here what they mean there.
        try:
            given: dict[str, Any] = files.make_context("writeStream", words).params
        except click.UsageError as error:
            raise UsageError(error.format_message()) from None
        order = order_of("log", given)
        return conversion_of(order), order.jobs or 1
