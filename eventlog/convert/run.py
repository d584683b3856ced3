"""Runs an order of `eventlog convert`: chooses the engine, converts, brings the output to its place, and marks rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from eventlog.cli.show import say, show_json, show_json_line
from eventlog.cli.watching import watching
from eventlog.convert.build import config_of, conversion_of, is_worth_spark
from eventlog.convert.commit import SUCCESS, Destination, summary_from
from eventlog.convert.identity import complete
from eventlog.convert.orders import LogOrder, Order
from eventlog.convert.work import cores, end_server, find_why_alone, foresee_workers, save_memory
from eventlog.core.errors import EX_DATA, OK, ConfigError, DataError
from eventlog.core.packages import SPARK, is_there, require_spark
from eventlog.core.secrets import bare_address

if TYPE_CHECKING:
    from eventlog.config.settings import Config
    from eventlog.convert.commit import Summary
    from eventlog.convert.marks import MarkedOutput, Marking
    from eventlog.convert.pipeline import ConversionWatch
    from eventlog.convert.settings import Conversion
    from eventlog.convert.stored import StoredConversion
    from eventlog_spark.cluster import Cluster


def run(order: Order) -> int:
    """Convert, show the result, and return the exit code."""
    if order.command == "follow":
        return run_following(order)
    config = config_of(order)
    by_spark = uses_spark(order, config)
    with ExitStack() as held:
        try:
            hold_folders(order, held)
            stored = open_store(order)
            summary = convert(order, config, stored, by_spark=by_spark)
        except KeyboardInterrupt:
            end_server()
            # Of a log other rows wait by the time that somebody goes on.
            if by_spark or isinstance(order.source, LogOrder):
                raise
            raise KeyboardInterrupt("the same command continues from there") from None
        show(order, summary)
        # Not earlier: where the output goes to a store, bad rows are read in the folder of this machine.
        if stored is not None:
            stored.discard()
    if summary.damage is not None:
        raise DataError(summary.damage, hint=f"{order.places.shown} holds _DAMAGED in the place of _SUCCESS.")
    return code_of(order, summary.bad, summary.rows - summary.duplicates)


def run_following(order: Order) -> int:
    """Convert batch after batch of a growing log, with a line for each."""
    config = config_of(order)
    conversion = conversion_of(order, config)
    require_spark()
    from eventlog_spark.following import Following, follow

    bad = rows = 0

    def report(name: str, summary: Summary) -> None:
        nonlocal bad, rows
        bad, rows = bad + summary.bad, rows + summary.rows - summary.duplicates
        if order.as_json:
            show_json_line({"batch": name, **asdict(summary)})
        else:
            say(f"{name}: {summary.line}")

    following = Following(
        # Executors begin in other folders.
        conversion=replace(conversion, destination=conversion.destination.absolute()),
        address=order.places.addresses.get("--out"),
        seconds=config.publisher.polling_interval,
        until_empty=order.until_empty,
    )
    with watching() as watch:
        follow(following, report, cluster=_cluster(order), watch=watch)
    return code_of(order, bad, rows)


def code_of(order: Order, bad: int, rows: int) -> int:
    """Return the exit code of a conversion with these bad rows among all rows."""
    wrong = bad > 0 if order.strict else order.strict is None and 0 < rows <= bad
    return EX_DATA if wrong else OK


def hold_folders(order: Order, held: ExitStack) -> None:
    """Lock the folders for addresses on this machine; copies are removed at the end."""
    places = order.places
    if not places.fetched and not places.stored:
        return
    from eventlog.convert.stored import claim

    for folder, address in places.fetched.items():
        held.enter_context(claim(Path(folder), f"reads copies of {address}"))
    if places.stored:
        held.enter_context(claim(places.out, f"is writing to {places.stored}"))
    # Last, so that they go first, as long as the folders are ours.
    for folder in places.fetched:
        held.callback(shutil.rmtree, folder, ignore_errors=True)


def open_store(order: Order) -> StoredConversion | None:
    """Return where the output is brought to when it is made; None where it is made at its place."""
    if not order.places.stored:
        return None
    from eventlog.convert.stored import StoredConversion
    from eventlog.sinks.store.objects import objects_at

    objects = objects_at(order.places.stored, what="--out")
    return StoredConversion(objects, order.places.out, overwrite=order.overwrite)


def convert(order: Order, config: Config, stored: StoredConversion | None, *, by_spark: bool) -> Summary:
    """Convert unless it is done, and mark rows, also those left unmarked of a complete output."""
    # Before the input is looked at: Arrow reads its settings when it is loaded.
    if not by_spark:
        prepare_processes(order)
    conversion = conversion_of(order, config)
    with write_lineage(order, config, conversion), open_place(conversion, order, stored) as place:
        if order.marks:
            from eventlog.convert.marks import can_be_marked, waits_for_marks

            assert place is not None
            can_be_marked(conversion.input)
            # An output without its marks comes first: its rows still wait, so to convert once more
            # would publish them twice.
            if waits_for_marks(conversion, place):
                return finish_marks(conversion, order, place)
        if stored is not None:
            # That is about the place in the store, not about the folder where it is made.
            conversion = replace(conversion, overwrite=False)
        done = find_done(conversion, order, stored, place)
        if done is not None:
            say(f"{order.places.shown} holds this conversion already; it is complete and is as it was.", err=True)
            return done
        warn(conversion, order)
        with marking_of(conversion, place) as marking:
            with watching() as watch:
                if by_spark:
                    summary = convert_on_spark(conversion, order, watch, marking)
                else:
                    summary = convert_here(conversion, order, stored, watch, marking)
            if stored is not None:
                stored.publish(marking)
            # Last of all: a row with its status whose output is not there would be lost.
            if marking is not None:
                for sentence in marking.finish().sentences():
                    say(f"eventlog: {sentence}", err=True)
    return summary


def write_lineage(order: Order, config: Config, conversion: Conversion) -> AbstractContextManager[None]:
    """Tell lineage of a conversion, if the configuration names a file for it."""
    if "lineage" not in config.tables:
        return nullcontext()
    from eventlog.lineage.converting import report_conversion

    source = order.source.url if isinstance(order.source, LogOrder) else ""
    tables = [table.whole for table in conversion.catalog or ()]
    shown = order.target.output or order.target.to_database or order.target.kafka or order.places.shown
    return report_conversion(config, source=source, output=bare_address(shown), tables=tables)


def prepare_processes(order: Order) -> None:
    """Prepare the local engine's processes before pyarrow is loaded and reads its settings."""
    if (order.engine.jobs or cores()) > 1:
        if why := find_why_alone():
            say(f"eventlog: {why}", err=True)
        else:
            # Their common ground is made ready while this process loads its own modules.
            foresee_workers()
    save_memory()


@contextmanager
def open_place(conversion: Conversion, order: Order, stored: StoredConversion | None) -> Iterator[MarkedOutput | None]:
    """Open the place of an output with rows to mark; None without marks."""
    if stored is not None:
        stored.finish_former()
    if not order.marks:
        yield None
    elif stored is not None:
        yield stored
    elif order.places.addresses:
        require_spark()
        from eventlog_spark.addresses import open_marked_address

        address = order.places.address("--out", order.places.out)
        with open_marked_address(address, _cluster(order), hiding=conversion.hides) as place:
            yield place
    else:
        yield Destination(conversion.destination)


def marking_of(conversion: Conversion, place: MarkedOutput | None) -> AbstractContextManager[Marking | None]:
    """Return the conversion's place in the journal; None without marks."""
    if place is None:
        return nullcontext()
    from eventlog.convert.marks import marking

    return marking(conversion, place)


def find_done(
    conversion: Conversion, order: Order, stored: StoredConversion | None, place: MarkedOutput | None
) -> Summary | None:
    """Return the summary of this very conversion, if its output is there."""
    if stored is not None:
        return stored.begin(conversion)
    if not order.places.addresses:
        return complete(conversion)
    # Only who marks has a session of Spark by now; else it is asked when Spark begins.
    return None if place is None else complete(conversion, place)


def warn(conversion: Conversion, order: Order) -> None:
    """Warn of rows without read-backs; skip this for an address, for only Spark can look there."""
    from eventlog.convert.reasons import foreseen

    warning = None if order.places.addresses else foreseen(conversion)
    if warning is not None:
        say(f"eventlog: {warning}", err=True)


def convert_here(
    conversion: Conversion,
    order: Order,
    stored: StoredConversion | None,
    watch: ConversionWatch,
    marking: Marking | None,
) -> Summary:
    """Convert by the local engine."""
    from eventlog.convert import local

    if stored is not None and marking is None:
        # A run that was killed while it put its output into the store had made it.
        made_before = complete(conversion)
        if made_before is not None:
            return made_before
    return local.convert(conversion, jobs=order.engine.jobs, watch=watch, marking=marking)


def convert_on_spark(conversion: Conversion, order: Order, watch: ConversionWatch, marking: Marking | None) -> Summary:
    """Convert on Spark; only here must it be installed."""
    require_spark()
    places = order.places
    if not places.addresses:
        from eventlog_spark.convert import convert as convert_folders

        # Executors begin in other folders.
        conversion = replace(conversion, destination=conversion.destination.absolute())
        return convert_folders(conversion, cluster=_cluster(order), watch=watch, marking=marking)
    from eventlog_spark.addresses import Addresses, convert_at

    snapshot = getattr(order.source, "snapshot", None)
    if snapshot is not None:
        snapshot = places.address("--snapshot", Path(snapshot))
    addresses = Addresses(
        destination=places.address("--out", places.out),
        inputs=tuple([places.address(word, Path(word)) for word in order.inputs]),
        snapshot=snapshot,
    )
    return convert_at(conversion, addresses, cluster=_cluster(order), marking=marking)


def finish_marks(conversion: Conversion, order: Order, place: MarkedOutput) -> Summary:
    """Mark the rows of a complete conversion: the marking was interrupted, or asked for later."""
    from eventlog.convert.marks import marking

    success = place.read(SUCCESS) or b""
    with marking(conversion, place) as marks:
        finished = marks.finish()
    say(f"{order.places.shown} was complete and is as it was; its rows are marked now.", err=True)
    for sentence in finished.sentences():
        say(f"eventlog: {sentence}", err=True)
    return summary_from(success)


def show(order: Order, summary: Summary) -> None:
    """Show the summary and the bad rows."""
    from eventlog.convert.reasons import bad_rows

    groups = bad_rows(order.places.out) if summary.bad else ()
    if order.as_json:
        show_json({**asdict(summary), "bad_rows": groups})
    else:
        for group in groups:
            say(f"eventlog: {group.sentence()}", err=True)
        say(summary.line)
    for note in summary.notes:
        say(f"eventlog: {note}", err=True)


def uses_spark(order: Order, config: Config) -> bool:
    """Return True if Spark does it: when it is asked for, or when it is worth it and can run."""
    if order.places.stored or order.places.fetched:
        return False
    if order.places.addresses:
        return True
    if order.engine.engine != "auto":
        return order.engine.engine == "spark"
    if not all(map(is_there, SPARK)):
        return False
    from eventlog_spark.java import find_java

    # Nobody has asked for Spark, so without a Java the local engine does it, without a message.
    try:
        find_java(os.environ)
    except ConfigError:
        return False
    return is_worth_spark(order, config)


def _cluster(order: Order) -> Cluster:
    from eventlog_spark.cluster import Cluster, read_conf

    return Cluster(master=order.engine.master, conf=read_conf(order.engine.conf))
