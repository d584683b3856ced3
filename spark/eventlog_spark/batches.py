"""Converts a stream of log rows batch after batch, each as a folder of files would be: what `foreachBatch` calls.

    _rows/batch-00000007     the rows of the batch in hand: a batch that comes again has the same
    batch-00000007           what `convert` makes of them, with `_SUCCESS`; a batch that has it is
                             not converted again
    _done/batch-00000007     notes the last batch that is done, and the change_seq that the next one
                             goes on from
    _log                     says which log or stream it is: another one would lose rows
    _lock                    keeps others out of a folder

Law: a batch counts as done only after its `_SUCCESS`, and what comes again meets what is there, or
the note where somebody has taken it away. So each row is converted exactly once, whatever was
killed when, and messages that are sent are those of one conversion that is taken up again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from eventlog.convert.commit import SUCCESS, Summary
from eventlog.convert.pipeline import ConversionWatch
from eventlog.convert.settings import Conversion, FilesInput
from eventlog.core.errors import SinkError, UsageError
from eventlog.durable_files import make_folder
from eventlog.sources.stream.claim import Claim
from eventlog_spark.addresses import TIMES, Addresses, convert_at
from eventlog_spark.cluster import configured
from eventlog_spark.convert import convert
from eventlog_spark.faults import travelling
from eventlog_spark.hadoop import HadoopFolder, as_named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS: Final = "_rows"
DONE: Final = "_done"
LOG: Final = "_log"
LOCK: Final = "_lock"
BEGUN: Final = frozenset({LOCK, ROWS, f"_{LOG}"})
"""What may be there of a first run that was killed before it had noted whose output it is; the last one is
that note on its way.
"""

QUERY: Final = "sql.streaming.queryId"
"""Where Spark says which stream a batch is of; the same whenever it goes on from its checkpoint."""

# Eight digits or more: numbers may outgrow those that are written.
_batch = re.compile(r"batch-\d{8,}").fullmatch


def number_of_batch(name: str) -> int:
    """Return the number in a batch's name: as texts, those with more digits would come first."""
    return int(name.removeprefix("batch-"))


BatchReport = Callable[[str, Summary], None]
"""Called for each batch that is done, with its name and what it amounts to."""


def convert_batches(out: str, **words: str | int | bool) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` to convert each row of a stream of log rows once.

    `out` is a folder that all nodes mount, or an address. The words are those of `eventlog convert`, such as
    `to="change-tables"`, `config="eventlog.toml"`, `schema="schema.json"`.
    """
    _order_of(out, "rows", words)
    batches: list[BatchConversion] = []

    def convert_batch(batch: DataFrame, number: int) -> None:
        query = batch.sparkSession.sparkContext.getLocalProperty(QUERY)
        if not batches:
            order = _order_of(out, "rows", words)
            address = order.places.addresses.get("--out")
            batches.append(
                BatchConversion(
                    batch.sparkSession, order.places.out, address, lambda rows: _conversion_of(out, rows, words)
                )
            )
        [conversion] = batches
        with travelling(), conversion.claimed():
            conversion.begin(f"the stream {query}")
            conversion.take(batch, number)

    return convert_batch


def _conversion_of(out: str, rows: str, words: dict[str, Any]) -> Conversion:
    from eventlog.convert.build import config_of, conversion_of

    order = _order_of(out, rows, words)
    return conversion_of(order, config_of(order))


def _order_of(out: str, rows: str, words: dict[str, Any]) -> Any:
    """Parse the words with the command's own parser, so they mean the same here as there."""
    import click

    from eventlog.convert.command import files
    from eventlog.convert.orders import order_of

    line = [rows, "--out", out]
    for name, value in words.items():
        option = f"--{name.replace('_', '-')}"
        # On a command line a word is there or not.
        if value is not False:
            line.append(option if value is True else f"{option}={value}")
    try:
        given: dict[str, Any] = files.make_context("convert_batches", line).params
    except click.UsageError as error:
        raise UsageError(error.format_message()) from None
    unfit = [name for name in words if name in UNFIT]
    if unfit:
        raise UsageError(f"--{unfit[0]} means nothing for the batches of a stream.", hint="Leave it out.")
    return order_of("batches", given)


UNFIT: Final = ("engine", "overwrite", "master", "conf", "strict", "json")
"""Words that say how a command works, not what becomes of rows."""


class BatchConversion:
    """Converts the batches of one stream into a folder, or at an address, one at a time.

    `conversion_of` makes a conversion of rows in files; where they lie and where it writes is set here.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        address: str | None,
        conversion_of: Callable[[str], Conversion],
        report: BatchReport = lambda _name, _summary: None,
        watch: ConversionWatch | None = None,
    ) -> None:
        self.target = HadoopFolder(spark, address or f"file:{folder.absolute()}")
        self._spark = spark
        self._folder = folder.absolute()
        self._address = address
        self._conversion_of = conversion_of
        self._report = report
        self._watch = watch

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Lock the folder for the block: nobody else writes there, or reads rows being written."""
        if self._address is not None:
            yield
            return
        make_folder(self._folder / ROWS)
        claim = Claim(self._folder / LOCK)
        if not claim.take():
            message = f"Another command or stream writes into {self._folder}."
            raise SinkError(message, hint="Wait for it, or choose another folder.")
        try:
            yield
        finally:
            claim.leave()

    def begin(self, here: str) -> None:
        """Note the source of the rows; refuse a place with rows of another one.

        Rows up to the other's last number would be left out.
        """
        names = self.target.names()
        if LOG in names:
            before = self.target.read(LOG).decode(errors="replace")
            if before != here:
                raise UsageError(
                    f"{self.target.address} has what was converted of {before}, and this is {here}.",
                    hint=f"Choose another folder, or remove {LOG} from this one if the log has only moved.",
                )
        elif names - BEGUN:
            hint = "Choose another folder, or continue there with what wrote it."
            raise UsageError(f"{self.target.address} is not empty.", hint=hint)
        else:
            self.target.note(LOG, here.encode())

    def take(self, batch: DataFrame, number: int) -> None:
        """Convert a batch, unless a former try has done so before Spark could note it."""
        name = f"batch-{number:08d}"
        done = HadoopFolder(self._spark, self.target.subfolder(DONE))
        before = max(filter(_batch, done.names()), key=number_of_batch, default="")
        if not before or number > number_of_batch(before):
            after = ""
            if before:
                after = done.read(before).decode()
            # The new note first: in between a crash leaves both, and the greater one counts.
            done.note(name, self._done(batch, name, after).encode())
            if before:
                done.remove(before)
        self.target.remove(f"{ROWS}/{name}")

    def _done(self, batch: DataFrame, name: str, after: str) -> str:
        """Convert the batch unless it is done, and return its last change_seq."""
        output = HadoopFolder(self._spark, self.target.subfolder(name))
        if SUCCESS in output.names():
            # Only its folder of work may be left.
            output.discard()
            return output.summary().change_seq
        kept = HadoopFolder(self._spark, self.target.subfolder(f"{ROWS}/{name}"))
        # Spark writes a `_SUCCESS` too, when all rows are there.
        if SUCCESS not in kept.names():
            with configured(self._spark, TIMES, "TIMESTAMP_MICROS"):
                batch.write.mode("overwrite").parquet(kept.address)
        # A number may turn out to be nobody's, so that a batch has no rows.
        if self._spark.read.parquet(as_named(kept.address)).isEmpty():
            return after
        summary = self._converted(name, after)
        self._report(name, summary)
        return summary.change_seq or after

    def _converted(self, name: str, after: str) -> Summary:
        rows = self.target.subfolder(f"{ROWS}/{name}")
        if self._address is None:
            rows = str(self._folder / ROWS / name)
        conversion = replace(self._conversion_of(rows), destination=self._folder / name, after=after)
        # The rows in files have their times in UTC already.
        if self._address is not None:
            places = Addresses(destination=self.target.subfolder(name), inputs=(as_named(rows),))
            return convert_at(replace(conversion, input=FilesInput(places=())), places)
        conversion = replace(conversion, input=FilesInput(places=(rows,)))
        return convert(conversion, watch=self._watch)
