"""Figures of outputs, tables, batches and the process, as Prometheus gets them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from eventlog.core.model import Event
from eventlog.daemon.vitals import MOST_TABLES, OutputTurn, PublisherHealth
from eventlog.delivery.report import Report
from eventlog.web.metrics import metrics
from tests.unit.daemon.test_watch import value


def event(number: int, table: str | None = "usr", time: str | None = None) -> Event:
    return Event(position=(number,), kind=1, table=table, key="id=1", time=time)


def test_each_output_has_its_own_figures() -> None:
    vitals = PublisherHealth(watched=True)
    vitals.serves(["near", "far"])
    now = datetime.now(UTC)
    times = [now.isoformat(), (now - timedelta(seconds=20)).isoformat(), "no time", None]
    events = [event(number, time=time) for number, time in enumerate(times)]
    vitals.delivered("near", OutputTurn(documents=2, seconds=0.2, last=("d", (3,)), events=events))
    vitals.delivered("far", OutputTurn(seconds=7.0, error="Nobody answers.", failed=True))
    told = metrics(vitals.reading())
    assert value(told, 'eventlog_output_documents_total{output="near"}') == "2"
    assert value(told, 'eventlog_output_documents_total{output="far"}') == "0"
    assert value(told, 'eventlog_output_failures_total{output="far"}') == "1"
    assert value(told, 'eventlog_delivery_seconds_bucket{le="5.0",output="near"}') == "1"
    assert value(told, 'eventlog_delivery_seconds_bucket{le="5.0",output="far"}') == "0"
    assert value(told, 'eventlog_delivery_seconds_count{output="far"}') == "1"
    assert value(told, 'eventlog_delay_seconds_bucket{le="10.0",output="near"}') == "1"
    assert value(told, 'eventlog_delay_seconds_count{output="near"}') == "2"
    assert 'eventlog_output_last_document_timestamp_seconds{output="far"}' not in told.decode()
    vitals.serves(["near"])
    assert 'output="far"' not in metrics(vitals.reading()).decode()


def test_tables_are_counted_by_name_while_they_are_few() -> None:
    vitals = PublisherHealth()
    for number in range(MOST_TABLES + 3):
        vitals.finished(Report(events=2, tables={f"t{number}": 2}), 0.3)
    told = metrics(vitals.reading())
    assert value(told, 'eventlog_table_rows_total{table="t49"}') == "2"
    assert value(told, 'eventlog_table_rows_total{table="other"}') == "6"
    assert value(told, 'eventlog_batch_seconds_bucket{le="0.25"}') == "0"
    assert value(told, "eventlog_batch_seconds_count ") == str(MOST_TABLES + 3)
