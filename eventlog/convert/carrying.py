"""Carries out an order of `eventlog convert`: chooses the engine, converts, brings the output to
its place, and marks rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict, replace

from eventlog.cli.show import say, show_json, show_json_line
from eventlog.core.errors import EX_DATA, OK, ConfigError, DataError
from eventlog.core.packages import is_there

if TYPE_CHECKING:
    from eventlog.convert.commit import Summary
    from eventlog.convert.mark import Marking
    from eventlog.convert.marked_place import MarkedPlace
    from eventlog.convert.pipeline import ConversionWatch
    from eventlog.convert.settings import Conversion
    from eventlog.convert.stored import StoredConversion
    from eventlog.convert.targets import ConversionOrder
    from eventlog_spark.cluster import Cluster


def carry_out(order: ConversionOrder) -> int:
    """Does it, and shows what became of it; the exit code."""
    if order.follow:
        return _followed(order)
    with _folders_claimed(order):
        return _carried_out(order)


@contextmanager
def _folders_claimed(order: ConversionOrder) -> Iterator[None]:
    """Keeps other processes out of the folders on this machine that stand for addresses."""
    from eventlog.convert.stored import claimed

    with ExitStack() as claims:
        for folder, address in order.fetched.items():
            claims.enter_context(claimed(Path(folder), f"reads copies of {address}"))
        if order.stored:
            claims.enter_context(claimed(order.out, f"is writing to {order.stored}"))
        yield


def _carried_out(order: ConversionOrder) -> int:
    from eventlog.convert.fetching import copies_removed

    stored, by_spark = _stored_conversion(order), _by_spark(order)
    try:
        with copies_removed(order.fetched):
            summary = _converted(order, stored, by_spark=by_spark)
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
    if stored is not None:
        stored.discard()
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
    return _code_of(order, summary.bad, summary.rows - summary.duplicates)


def _stored_conversion(order: ConversionOrder) -> StoredConversion | None:
    """Where the output is brought to when it is made; None where it is made at its place."""
    if not order.stored:
        return None
    from eventlog.convert.stored import StoredConversion
    from eventlog.sinks.store.objects import objects_at

    objects = objects_at(order.stored, what="--out")
    return StoredConversion(objects, order.out, overwrite=order.overwrite)


def _converted(
    order: ConversionOrder,
    stored: StoredConversion | None,
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
    with _marked_output(conversion, order, stored, marks=marks) as marked:
        # An output without its marks comes first: its rows still wait, so to convert once more
        # would publish them twice.
        if marks and waits_for_marks(conversion, marked):
            return _finished(conversion, order, marked)
        if stored is not None:
            # That is about the place in the store, not about the folder where it is made.
            conversion = replace(conversion, overwrite=False)
        done = _already_done(conversion, order, stored, marked, marks=marks)
        if done is not None:
            shown = _shown(order)
            say(f"{shown} holds this conversion already; it is complete and is as it was.", err=True)
            return done
        if not marks:
            return _made(conversion, order, stored, by_spark=by_spark, marked=None)
        return _made(conversion, order, stored, by_spark=by_spark, marked=marked)


@contextmanager
def _marked_output(
    conversion: Conversion,
    order: ConversionOrder,
    stored: StoredConversion | None,
    *,
    marks: bool,
) -> Iterator[MarkedPlace]:
    """Where the output is to stand, for who marks its rows."""
    from eventlog.convert.marked_place import MarkedFolder

    if stored is not None:
        stored.settle()
        yield stored.marked
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
    stored: StoredConversion | None,
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
    if stored is None:
        return complete(conversion)
    return stored.begin(conversion)


def _made(
    conversion: Conversion,
    order: ConversionOrder,
    stored: StoredConversion | None,
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
                if stored is not None and marks is None:
                    # A run that was killed while it put its output into the store had made it.
                    made_before = complete(conversion)
                summary = made_before or convert_here(
                    conversion, jobs=order.jobs, resume=order.resume, watch=watch, marking=marks
                )
        if stored is not None:
            stored.publish(marks)
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
        address=order.addresses.get("--out"),
        seconds=seconds,
        until_empty=order.until_empty,
    )
    with watching() as watch:
        follow(following, report, cluster=_cluster(order), watch=watch)
    return _code_of(order, bad, rows)


def _code_of(order: ConversionOrder, bad: int, rows: int) -> int:
    """The exit code of a conversion with these bad rows among all rows."""
    wrong = bad > 0 if order.strict else order.strict is None and 0 < rows <= bad
    return EX_DATA if wrong else OK


def _finished(conversion: Conversion, order: ConversionOrder, marked: MarkedPlace) -> Summary:
    """Marks the rows of a conversion that is complete: somebody was interrupted, or looked at the
    output first.
    """
    from eventlog.convert.commit import SUCCESS, summary_from
    from eventlog.convert.mark import marking

    success = marked.read(SUCCESS) or b""
    with marking(conversion, marked) as marks:
        finished = marks.finish()
    click.echo(f"{_shown(order)} was complete and is as it was; its rows are marked now.", err=True)
    for sentence in finished.sentences():
        say(f"eventlog: {sentence}", err=True)
    return summary_from(success)


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

    # Nobody has asked for Spark, so without a Java the local engine does it, without a message.
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
