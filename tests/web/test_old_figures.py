"""Figures that are old are never called good, and an output that fails is seen at once."""

from __future__ import annotations

from time import monotonic

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.care.flow import Rate
from eventlog.care.listing import Filters
from eventlog.care.status import Facts
from eventlog.config.settings import Config, SourceConfig
from eventlog.daemon.health import PublisherHealth
from eventlog.publisher.turn_report import Turn
from eventlog.sources.log.flow import Flow
from eventlog.sql.findlog import log_columns
from eventlog.sql.names import LogNames
from eventlog.web import collector
from eventlog.web.collector import Collector
from eventlog.web.reading import History, PageReading, ReasonCount, Sample
from eventlog.web.verdict import headline
from eventlog.web.words import word_of
from tests.conformance.event_logs import installed

PATIENCE = 30
NOW = 1_800_000_000.0
READING = PageReading(log="event_log", database="d", now=NOW, flow=Flow(publishing=True))


def measured(seconds: float) -> PageReading:
    sample = Sample(at=NOW - seconds, waiting=0, oldest=None, lag=0.0, rate=0.0)
    return replace(READING, history=History().with_sample(sample))


@pytest.mark.parametrize("age, kind", [(5, "good"), (60, "good"), (61, "warn"), (289, "warn")])
def test_a_verdict_that_is_old_says_so_and_loses_its_green(age: float, kind: str) -> None:
    found = headline(measured(age))
    assert word_of(found.state).kind == kind
    assert found.verdict is not None
    assert ("ago, and not since" in found.verdict.before) is (kind == "warn")


def test_what_is_bad_stays_bad_when_it_is_old() -> None:
    stuck = replace(measured(120), flow=Flow(publishing=False, oldest=1, lag=900.0))
    found = headline(stuck)
    assert word_of(found.state).kind == "bad"
    assert "ago, and not since" in found.age


def test_an_output_that_fails_is_shown_and_measured_again(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "SAMPLE_SECONDS", 0.01)
    installed(sqlite)
    vitals = PublisherHealth()
    config = Config(source=SourceConfig(url=str(sqlite.url)))
    seen = Collector(sqlite, log_columns(sqlite, LogNames()), config, vitals)
    seen.measure()
    [output] = seen.outputs
    vitals.note_turn(output, Turn(complaint="nobody is there"), failed=True)
    began = monotonic()
    seen._rest(PATIENCE)
    assert monotonic() - began < PATIENCE, "it waits as if nothing had happened"
    shown = seen.reading().output(output)
    assert shown is not None
    assert shown.state.is_failing


def test_rows_are_counted_by_letter_and_by_reason_where_somebody_has_counted_them() -> None:
    facts = Facts(
        log="event_log",
        rows={"S": 7, "E": 3},
        ignored={"F": 1},
        oldest_waiting=None,
        lag_seconds=None,
        rate=Rate(rows=0, seconds=60, per_second=0.0),
        last_error=None,
        triggers={},
    )
    reasons = [
        ReasonCount(status="E", reason="refused", rows=2),
        ReasonCount(status="E", reason="invalid", rows=1),
        ReasonCount(status="F", reason="refused", rows=1),
        ReasonCount(status=None, reason="refused", rows=9),
    ]
    counted = replace(READING, facts=facts, reasons=reasons, flow=None)
    assert counted.count_rows(Filters()) == 11
    assert counted.count_rows(Filters(statuses="E")) == 3
    assert counted.count_rows(Filters(statuses="EF", reason="refused")) == 3
    for nobody in (Filters(reason="refused"), Filters(statuses="NE", reason="refused"), Filters(key="idu=1")):
        assert counted.count_rows(nobody) is None
