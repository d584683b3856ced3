"""The publisher's figures in the text format of Prometheus; imported only where there is an address to ask at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from platform import python_version
from typing import Final, get_args

from msgspec.structs import asdict
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry

from eventlog.core.model import TABLE_FAULTS, Reason
from eventlog.core.proofs import LastProof
from eventlog.daemon.health import Histogram, State, VitalsReading
from eventlog.delivery.output import OutputState
from eventlog.sources.log.flow import STATES
from eventlog.version import VERSION

# 0.0.4 is the version of Prometheus's text format.
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

UNREAD_REASONS: Final = tuple(reason.value for reason in Reason if reason in TABLE_FAULTS)

Figures = float | None | Mapping[str, float]
"""One figure, which may be unknown; or several by the value of a label."""


def metrics(reading: VitalsReading, refused_logins: int | None = None) -> bytes:
    """Write all known figures; without a page there are no logins to count."""
    # Else each collector is run once more when it registers, to learn its names.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(reading, refused_logins))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class _Collector(Collector):
    def __init__(self, reading: VitalsReading, refused_logins: int | None) -> None:
        self._reading = reading
        self._refused_logins = refused_logins

    def collect(self) -> Iterable[Metric]:
        info = GaugeMetricFamily("eventlog_info", "Version of eventlog, and of Python.", labels=["version", "python"])
        info.add_metric([VERSION, python_version()], 1)
        yield info
        states = {state: float(state == self._reading.state) for state in get_args(State)}
        yield _gauge("state", "1 for what the publisher does now, 0 for all else.", states, "state")
        reading = self._reading
        # Without N: such rows are not finished.
        rows = {status: reading.rows.get(status, 0) for status in "SWEF"}
        failures = {blame: reading.failures.get(blame, 0) for blame in ("source", "sink", "other")}
        yield _counter("rows", "Finished rows, by status.", rows, "status")
        yield _counter("table_rows", "Finished rows, by table; beyond 50 tables as `other`.", reading.tables, "table")
        yield _counter("changes", "Changes published.", reading.changes)
        yield _counter("documents", "Documents written, over all outputs.", reading.documents)
        yield _counter("heartbeats", "Heartbeats published.", reading.heartbeats)
        yield _counter("cycles", "Finished cycles.", reading.cycles)
        yield _counter("active_cycles", "Cycles that published.", reading.active_cycles)
        yield _counter("cycle_seconds", "Time spent in cycles.", reading.seconds)
        yield _counter("failures", "Cycles that failed, by whose fault it was.", failures, "blame")
        yield _counter("refused_logins", "Wrong tokens that the page was given.", self._refused_logins)
        yield from _gauges(self._reading)
        yield from _of_outputs(self._reading)
        yield from ProofCollector(self._reading.proofs).collect()


def _gauges(reading: VitalsReading) -> Iterator[Metric]:
    standby = reading.standby
    yield _gauge("last_cycle_timestamp_seconds", "End of the last cycle.", reading.last_cycle)
    yield _gauge("last_document_timestamp_seconds", "Time of the last document.", reading.last_document)
    yield from _of_flow(reading)
    yield _gauge(
        "standby_waiting_rows",
        "Rows that wait while this publisher is on standby, counted up to 1000.",
        None if standby is None else standby.waiting,
    )
    yield _gauge(
        "standby_stalled_seconds",
        "Time for which rows have waited while the publisher with the lock finished none.",
        None if standby is None else standby.stalled_seconds,
    )
    yield _gauge("triggers", "Triggers of tracked tables, by state.", reading.triggers, "state")
    yield _gauge(
        "failing_triggers",
        "Triggers that fail every write to their table, because a column that they name is gone.",
        reading.failing_triggers,
    )
    yield _gauge("silent_seconds", "Time since the loop last moved.", reading.silent)


def _of_flow(reading: VitalsReading) -> Iterator[Metric]:
    """Tell what waits in the log; nothing until somebody has measured it."""
    flow = reading.flow
    if flow is None:
        return
    lags = flow.lags
    unread: Figures = {reason: float(flow.unread_tables.get(reason, 0)) for reason in UNREAD_REASONS}
    states: Figures = {state: float(state == flow.state) for state in STATES}
    behind = dict.fromkeys(sorted({*reading.outputs, *lags}), 0.0) | {
        name: float(lag.rows) for name, lag in lags.items()
    }
    paused: Figures = {name: float(lag.paused) for name, lag in lags.items()}
    overdue: Figures = {name: float(lag.overdue) for name, lag in lags.items()}
    yield _gauge("waiting_rows", "Rows that wait to be published.", flow.parts.total)
    yield _gauge("lag_seconds", "Age of the row that waits longest, of those that nobody holds.", flow.lag)
    yield _gauge("backlog_rows", "Rows that wait, by what they wait for.", asdict(flow.parts), "waits")
    yield _gauge("unread_tables", "Tables that cannot be read back, by reason.", unread, "reason")
    yield _gauge("flow", "1 for the state of the log, 0 for all else.", states, "state")
    yield _gauge("output_lag_rows", "Rows that a lagging output lacks; 0 for one that is up to date.", behind, "output")
    yield _gauge("output_paused", "1 for an output that is paused, by somebody or for a fault.", paused, "output")
    yield _gauge(
        "output_pause_overdue", "1 for an output that is paused for too long, or too far behind.", overdue, "output"
    )


def _of_outputs(reading: VitalsReading) -> Iterator[Metric]:
    figures = dict(sorted(reading.figures.items()))
    yield _counter(
        "output_documents",
        "Documents that an output has taken.",
        {name: reading.outputs.get(name, OutputState()).documents for name in figures},
        "output",
    )
    yield _counter(
        "output_failures",
        "Shares of batches that an output did not take to their end.",
        {name: output.failures for name, output in figures.items()},
        "output",
    )
    yield _gauge(
        "output_last_document_timestamp_seconds",
        "Time of the last document that an output has taken.",
        {name: output.at for name, output in reading.outputs.items() if output.at is not None},
        "output",
    )
    yield _histogram("batch_seconds", "Time of a batch from reading to the status of its rows.", {"": reading.batches})
    yield _histogram(
        "delivery_seconds",
        "Time in which an output took its share of a batch, with the answers to it.",
        {name: output.shares for name, output in figures.items()},
        "output",
    )
    yield _histogram(
        "delay_seconds",
        "Time from a row of the log, by its event_time, until an output had it. Each row counts.",
        {name: output.delays for name, output in figures.items()},
        "output",
    )


class ProofCollector(Collector):
    """What the last proof of each table found; of one that never ended only that it failed."""

    def __init__(self, proofs: Sequence[LastProof]) -> None:
        self._proofs = proofs

    def collect(self) -> Iterable[Metric]:
        differences = _gauge_of_tables("differences", "Objects that differ in a table.", "kind")
        rows = _gauge_of_tables("rows", "Rows compared.")
        waiting = _gauge_of_tables("waiting_rows", "Objects on their way.")
        equal = _gauge_of_tables("equal", "1 without a difference.")
        seconds = _gauge_of_tables("seconds", "Time that a proof took.")
        at = _gauge_of_tables("timestamp_seconds", "Time of the last proof.")
        failed = _gauge_of_tables("failed", "1 where the newest attempt failed.")
        for proof in self._proofs:
            labels = [proof.output, proof.table]
            failed.add_metric(labels, float(bool(proof.error)))
            if proof.at is None:
                continue
            for kind, count in proof.by_kind.items():
                differences.add_metric([*labels, kind], count)
            rows.add_metric(labels, proof.rows)
            waiting.add_metric(labels, proof.waiting)
            equal.add_metric(labels, float(proof.equal))
            seconds.add_metric(labels, proof.seconds)
            at.add_metric(labels, proof.at)
        yield from (differences, rows, waiting, equal, seconds, at, failed)


def _gauge_of_tables(name: str, meaning: str, *more: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"eventlog_verify_{name}", meaning, labels=["output", "table", *more])


def _histogram(name: str, meaning: str, figures: Mapping[str, Histogram], label: str = "") -> Metric:
    family = HistogramMetricFamily(f"eventlog_{name}", meaning, labels=_labels(label))
    for value, histogram in figures.items():
        # A bucket of Prometheus counts what is in the smaller ones too.
        counts = accumulate(histogram.counts or [0] * (len(histogram.bounds) + 1))
        buckets = zip([*map(str, histogram.bounds), "+Inf"], counts, strict=True)
        family.add_metric([value] if label else [], [*buckets], histogram.total)
    return family


def _counter(name: str, meaning: str, figures: Figures, label: str = "") -> Metric:
    return _fill_metric(CounterMetricFamily(f"eventlog_{name}", meaning, labels=_labels(label)), figures)


def _gauge(name: str, meaning: str, figures: Figures, label: str = "") -> Metric:
    return _fill_metric(GaugeMetricFamily(f"eventlog_{name}", meaning, labels=_labels(label)), figures)


def _labels(label: str) -> list[str]:
    return [label] if label else []


def _fill_metric(family: CounterMetricFamily | GaugeMetricFamily, figures: Figures) -> Metric:
    if isinstance(figures, Mapping):
        for value, figure in figures.items():
            family.add_metric([value], figure)
    elif figures is not None:
        family.add_metric([], figures)
    return family
