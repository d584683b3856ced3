"""`eventlog convert`: any number of log rows or captured records in one go, to any target."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict, replace

from eventlog.cli.show import say, show_json, show_json_line
from eventlog.cli.site import complete_outputs, config_option, json_option
from eventlog.core.errors import EX_DATA, OK, ConfigError, DataError
from eventlog.core.packages import is_there, require

if TYPE_CHECKING:
    from eventlog.convert.commit import Summary
    from eventlog.convert.mark import Marking
    from eventlog.convert.marked_place import MarkedPlace
    from eventlog.convert.pipeline import ConversionWatch
    from eventlog.convert.settings import Conversion
    from eventlog.convert.stored import StoredConversion
    from eventlog.convert.targets import ConversionOrder
    from eventlog_spark.cluster import Cluster

PART_EVENTS = 100_000


@click.command()
@click.argument(
    "inputs",
    metavar="INPUT",
    nargs=-1,
    required=True,
    # A shell completes names of files; what else an input may be is looked at later.
    type=click.Path(readable=False),
)
@click.option(
    "--from",
    "source",
    type=click.Choice(["log", "gbase", "linter"]),
    default="log",
    show_default=True,
    help="What INPUT holds: rows of an event log, or a captured stream.",
)
@click.option(
    "--to",
    "target",
    type=click.Choice(["xds", "change-tables", "messages"]),
    default="xds",
    show_default=True,
    help="What changes become.",
)
@click.option("--out", metavar="DEST", required=True, help="A folder, which is made; or an address: s3://….")
@click.option("--overwrite", is_flag=True, help="Replace what an earlier conversion left in DEST.")
@click.option(
    "--engine",
    type=click.Choice(["auto", "spark", "local"]),
    default="auto",
    show_default=True,
    help="auto: Spark for addresses. If installed, also with --master or --conf, or (without"
    " --kafka) for 5 million rows of a database or 256 MB of files."
    " Local with --jobs, --resume, --to-database, --to-lake, and for all else.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Processes of the local engine (default: all cores).",
)
@click.option("--master", metavar="URL", help="Spark's master (default: local[*]).")
@click.option(
    "--conf",
    multiple=True,
    metavar="K=V",
    help="A setting of Spark; can be given several times.",
)
@click.option("--log", metavar="NAME", help="The event log table, where INPUT is a database.")
@click.option(
    "--status",
    "statuses",
    metavar="LETTERS",
    help="Only rows with these statuses (databases: N).",
)
@click.option(
    "--mark",
    is_flag=True,
    help="Write the status of the rows into the database; no publisher may work.",
)
@click.option(
    "--schema",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Tables, types and keys as JSON.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="TABLE=COL,…",
    help="A table's key, for a stream.",
)
@click.option(
    "--tables",
    multiple=True,
    metavar="LABEL=TABLE,…",
    help="The tables of a stream's labels: 111=shop.t1.",
)
@click.option("--code-page", metavar="NAME", help="The code page of a stream's text, e.g. cp1251.")
@click.option(
    "--dirty",
    is_flag=True,
    help="Each line of a stream's .hex file is a whole buffer.",
)
@click.option("--database", metavar="URL", help="The database that answers query-backs.")
@click.option("--snapshot", metavar="DIR", help="Files that answer query-backs.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["parquet", "csv", "json", "avro"]),
    help="Of change tables: parquet, csv, json; of messages: json, avro. Default: the configuration's.",
)
@click.option(
    "--metadata-topic",
    metavar="NAME",
    help="Also write metadata messages, into this topic.",
)
@click.option(
    "--to-database",
    metavar="URL",
    help="Change tables into this database (local engine).",
)
@click.option(
    "--to-lake",
    metavar="NAME",
    help="Change tables into the lake of this output (local engine).",
)
@click.option("--kafka", metavar="SERVERS", help="Messages into the topics of this Kafka.")
@click.option(
    "--part-events",
    type=click.IntRange(1),
    default=PART_EVENTS,
    show_default=True,
    metavar="N",
    help="Changes in a part file.",
)
@click.option(
    "--transactions",
    type=click.Choice(["mixed", "whole"]),
    help="whole: the changes of a transaction together. Default: the configuration's.",
)
@click.option("--coalesce", is_flag=True, help="One change for each life of an object.")
@click.option("--strict", is_flag=True, help="Exit with 65 when there were bad rows.")
@click.option("--resume", is_flag=True, help="Continue an interrupted run (local engine).")
@click.option(
    "--follow",
    is_flag=True,
    help="Continue as the log grows, batch after batch, until a signal (Spark).",
)
@click.option("--until-empty", is_flag=True, help="With --follow: end when nothing is left.")
@click.option(
    "--output",
    metavar="NAME",
    shell_complete=complete_outputs,
    help="Use the policies and settings of this output.",
)
@click.option(
    "--no-policies",
    is_flag=True,
    help="Publish without the policies of the configuration.",
)
@config_option("A configuration file.")
@json_option
def convert(**given: Any) -> int:
    """Converts a whole backlog: rows of an event log or a captured stream become XDS documents,
    change tables or messages.

    INPUT is a file (Parquet, JSON lines, CSV), a folder, a pattern, an address or a database URL. DEST is
    complete when it has _SUCCESS; if a part of a stream is missing, it has _DAMAGED, and the
    exit code is 65.

    Example: eventlog convert archive/ --schema schema.json --out documents/
    """
    require("A conversion", "pyarrow")
    from eventlog.convert.fetching import copies_removed
    from eventlog.convert.ordering import order_of

    order = order_of(given)
    if order.follow:
        return _followed(order)
    place, by_spark = _place(order), _by_spark(order)
    try:
        with copies_removed(order.fetched):
            summary = _converted(order, place, by_spark=by_spark)
    except KeyboardInterrupt:
        from eventlog.convert.work import end_server

        end_server()
        # What was read for marks may be published by the time that somebody goes on.
        if by_spark or order.mark:
            raise
        raise KeyboardInterrupt("the same command with --resume continues from there") from None
    from eventlog.convert.reasons import bad_rows

    groups = bad_rows(order.out) if summary.bad else ()
    # Not earlier: where the output goes to a store, bad rows are read in the folder of this machine.
    if place is not None:
        place.discard()
    if order.as_json:
        show_json({**asdict(summary), "bad_rows": groups})
    else:
        for group in groups:
            say(f"eventlog: {group.sentence()}", err=True)
        say(summary.line)
    for note in summary.notes:
        say(f"eventlog: {note}", err=True)
    if summary.damage is not None:
        where = order.stored or order.out
        raise DataError(summary.damage, hint=f"{where} holds _DAMAGED in the place of _SUCCESS.")
    if order.strict and summary.bad:
        return EX_DATA
    return OK


def _place(order: ConversionOrder) -> StoredConversion | None:
    """Where the output is brought to when it is made; None where it is made at its place."""
    if not order.stored:
        return None
    from eventlog.convert.stored import StoredConversion
    from eventlog.sinks.store.objects import objects_at

    objects = objects_at(order.stored, what="--out")
    return StoredConversion(objects, order.out, overwrite=order.overwrite)


def _converted(
    order: ConversionOrder,
    place: StoredConversion | None,
    *,
    by_spark: bool,
) -> Summary:
    """Converts, and marks what is to be marked: also what was left unmarked of an output that is
    complete.
    """
    from eventlog.convert.ordering import conversion_of

    conversion = conversion_of(order)
    if not by_spark:
        # What the processes of the local engine need is made ready.
        from eventlog.convert.work import ALONE, foresee_workers, processes_share_locks, save_memory

        if (order.jobs or os.cpu_count() or 1) > 1:
            if processes_share_locks():
                # Their common ground is made ready while this process loads its own modules.
                foresee_workers()
            else:
                say(f"eventlog: {ALONE}", err=True)
        # Before anything loads pyarrow, which reads its settings once.
        save_memory()
    from eventlog.convert.mark import can_be_marked, waits_for_marks
    from eventlog.convert.settings import LogInput

    source = conversion.input
    marks = isinstance(source, LogInput) and source.mark
    if isinstance(source, LogInput) and marks:
        can_be_marked(source)
    with _marked_place(conversion, order, place, marks=marks) as marked:
        # An output without its marks comes first: its rows still wait, so to convert once more
        # would publish them twice.
        if marks and waits_for_marks(conversion, marked):
            return _finished(conversion, order, marked)
        if place is not None:
            # That is about the place in the store, not about the folder where it is made.
            conversion = replace(conversion, overwrite=False)
        done = _already_done(conversion, order, place, marked, marks=marks)
        if done is not None:
            shown = _shown(order)
            say(f"{shown} holds this conversion already; it is complete and is as it was.", err=True)
            return done
        if not marks:
            return _made(conversion, order, place, by_spark=by_spark, marked=None)
        return _made(conversion, order, place, by_spark=by_spark, marked=marked)


@contextmanager
def _marked_place(
    conversion: Conversion,
    order: ConversionOrder,
    place: StoredConversion | None,
    *,
    marks: bool,
) -> Iterator[MarkedPlace]:
    """Where the output is to stand, for who marks its rows."""
    from eventlog.convert.marked_place import MarkedFolder

    if place is not None:
        place.settle()
        yield place.marked
    elif order.addresses and marks:
        _require_spark()
        from eventlog_spark.marked import marked_address

        address = order.address("--out", order.out)
        with marked_address(address, _cluster(order), hiding=conversion.hides) as marked:
            yield marked
    else:
        yield MarkedFolder(conversion.destination)


def _shown(order: ConversionOrder) -> str:
    """DEST as it was written."""
    return order.stored or order.addresses.get("--out") or str(order.out)


def _already_done(
    conversion: Conversion,
    order: ConversionOrder,
    place: StoredConversion | None,
    marked: MarkedPlace,
    *,
    marks: bool,
) -> Summary | None:
    """What this very conversion did, where its output is there."""
    from eventlog.convert.again import complete, same
    from eventlog.convert.commit import SUCCESS

    if order.addresses:
        # Only who marks has a session of Spark by now; else it is asked when Spark begins.
        if not marks or conversion.overwrite:
            return None
        success = marked.read(SUCCESS)
        if success is None:
            return None
        return same(success, conversion)
    if place is None:
        return complete(conversion)
    return place.begin(conversion)


def _made(
    conversion: Conversion,
    order: ConversionOrder,
    place: StoredConversion | None,
    *,
    by_spark: bool,
    marked: MarkedPlace | None,
) -> Summary:
    """Converts by the engine that was chosen, brings the output to its place in a store, and marks
    what is to be marked.
    """
    from eventlog.cli.watching import watching
    from eventlog.convert.again import complete
    from eventlog.convert.mark import marking
    from eventlog.convert.reasons import foreseen

    # Only Spark knows what lies at an address.
    warning = None
    if not order.addresses:
        warning = foreseen(conversion)
    if warning is not None:
        say(f"eventlog: {warning}", err=True)
    with marking(conversion, marked) if marked is not None else nullcontext() as marks:
        with watching() as watch:
            if by_spark:
                summary = _on_spark(conversion, order, watch, marks)
            else:
                from eventlog.convert.local import convert as convert_here

                made_before = None
                if place is not None and marks is None:
                    # A run that was killed while it put its output into the store had made it.
                    made_before = complete(conversion)
                summary = made_before or convert_here(
                    conversion, jobs=order.jobs, resume=order.resume, watch=watch, marking=marks
                )
        if place is not None:
            place.publish(marks)
        # Last of all: a row with its letter whose output is not there would be lost.
        if marks is not None:
            for sentence in marks.finish().sentences():
                say(f"eventlog: {sentence}", err=True)
    return summary


def _followed(order: ConversionOrder) -> int:
    """Converts batch after batch, with a line for each."""
    from eventlog.convert.ordering import conversion_of, seconds_between_looks

    conversion, seconds = conversion_of(order), seconds_between_looks(order)
    from eventlog.cli.watching import watching

    _require_spark()
    from eventlog_spark.following import Following, follow

    bad = 0

    def told(name: str, summary: Summary) -> None:
        nonlocal bad
        bad += summary.bad
        if order.as_json:
            show_json_line({"batch": name, **asdict(summary)})
        else:
            say(f"{name}: {summary.line}")

    following = Following(
        # Executors begin in other folders.
        conversion=replace(conversion, destination=conversion.destination.absolute()),
        address=order.addresses.get("--out"),
        seconds=seconds,
        until_empty=order.until_empty,
    )
    with watching() as watch:
        follow(following, told, cluster=_cluster(order), watch=watch)
    if order.strict and bad:
        return EX_DATA
    return OK


def _finished(conversion: Conversion, order: ConversionOrder, marked: MarkedPlace) -> Summary:
    """Marks the rows of a conversion that is complete: somebody was interrupted, or looked at the
    output first.
    """
    from eventlog.convert.commit import SUCCESS, summary_told
    from eventlog.convert.mark import marking

    success = marked.read(SUCCESS) or b""
    with marking(conversion, marked) as place:
        finished = place.finish()
    click.echo(f"{_shown(order)} was complete and is as it was; its rows are marked now.", err=True)
    for sentence in finished.sentences():
        say(f"eventlog: {sentence}", err=True)
    return summary_told(success)


def _by_spark(order: ConversionOrder) -> bool:
    """Whether Spark does it: when it is asked for, or when it is worth it and can run."""
    from eventlog.convert.ordering import worth_spark

    if order.stored or order.fetched:
        return False
    if order.addresses:
        return True
    if order.engine != "auto":
        return order.engine == "spark"
    if not is_there("pyspark"):
        return False
    from eventlog_spark.java import find_java

    # Nobody has asked for Spark, so without a Java the local engine does it, and nothing is said.
    try:
        find_java(os.environ)
    except ConfigError:
        return False
    return worth_spark(order)


def _require_spark() -> None:
    from eventlog_spark.cluster import require_spark

    require_spark()


def _cluster(order: ConversionOrder) -> Cluster:
    from eventlog_spark.cluster import Cluster, read_conf

    return Cluster(master=order.master, conf=read_conf(order.conf))


def _on_spark(
    conversion: Conversion,
    order: ConversionOrder,
    watch: ConversionWatch,
    marking: Marking | None,
) -> Summary:
    """The one door to Spark; only who goes through it needs Spark to be installed."""
    _require_spark()
    from eventlog_spark.convert import convert as convert_on_spark

    if order.addresses:
        from eventlog_spark.addresses import Addresses, convert_at

        inputs: list[str] = []
        if not order.from_database:
            inputs = [order.address(word, Path(word)) for word in order.inputs]
        snapshot = None
        if order.snapshot is not None:
            snapshot = order.address("--snapshot", order.snapshot)
        places = Addresses(
            destination=order.address("--out", order.out),
            inputs=tuple(inputs),
            snapshot=snapshot,
        )
        return convert_at(conversion, places, cluster=_cluster(order), marking=marking)
    # Executors begin in other folders.
    conversion = replace(conversion, destination=conversion.destination.absolute())
    return convert_on_spark(conversion, cluster=_cluster(order), watch=watch, marking=marking)
