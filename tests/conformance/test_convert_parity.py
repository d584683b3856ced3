"""Bulk conversion and the daemon: equal elements and outcomes, however the input is cut, ordered and written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert.settings import MessageFiles, SnapshotRows
from eventlog.core.errors import ConfigError
from eventlog.core.model import Event, Outcome, Row, RowId
from eventlog.core.rules import Options, Round, decide
from eventlog.core.rules.definitions import DefinitionSpan
from eventlog.core.schema import Catalog
from eventlog.core.seams import encode as encode_changes
from eventlog.delivery.output import Output
from eventlog.policies.bound import Policy, PolicyFormat
from eventlog.policies.steps import Steps
from eventlog.publisher.encode import Part, encode
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog.xds.write import XdsFormat
from tests.support.converting import (
    LogRow,
    bare,
    converted,
    elements_of,
    files_of,
    log_row,
    outcomes_of,
    row_of,
    write_csv,
    write_lines,
    write_parquet,
    write_snapshot,
)
from tests.support.daily import daily
from tests.support.examples import examples
from tests.support.memory import MemoryRows, MemorySink
from tests.support.shares import met, shares
from tests.support.strategies import CATALOG, History, careless_logs, histories, policies

MESSAGES = MessageSettings(topic="{table}")
options = st.builds(Options, user=st.sampled_from([None, "idm"]), allow_loopback=st.booleans(), coalesce=st.booleans())

pytestmark = pytest.mark.usefixtures("small_steps")


def published(
    events: Sequence[Event],
    rows: dict[RowId, Row] | None,
    catalog: Catalog | None,
    chosen: Options,
    steps: Steps = (),
) -> tuple[str, list[dict[str, object]]]:
    """Publish all events in one cycle as the daemon does; return elements and outcomes."""
    reader = None if rows is None else MemoryRows(rows)
    needs = Policy(steps, catalog).needs if steps else None
    decision = Round(catalog=catalog, reader=reader, options=chosen, needs=needs).decide(events)
    sink = MemorySink([])
    output = Output(format=PolicyFormat(XdsFormat(batch_size=5), steps), sink=sink)
    part = Part(decision=decision, span=DefinitionSpan(catalog=catalog or Catalog()))
    encoded = encode(output, [part], after="", counts={})
    sink.commit("", encoded.documents)
    places: dict[str, str] = {}
    for name in sorted(sink.taken):
        places[sink.routes[name]] = places.get(sink.routes[name], "") + bare(sink.taken[name].decode())
    elements = "".join(f"{place or ''}{text}" for place, text in sorted(places.items()))
    outcomes: list[dict[str, object]] = []
    for position in sorted(decision.outcomes.positions):
        one = encoded.outcomes.get(position, Outcome(position=position))
        said = {"status": one.status.value, "reason": one.reason.value, "note": one.note}
        outcomes.append({"position": position[0], **said})
    return elements, outcomes


@contextmanager
def written(history: History) -> Iterator[tuple[Path, SnapshotRows, Path]]:
    """Write the log's rows into a file and a snapshot of the tables; yield these with a folder for the conversion."""
    with TemporaryDirectory() as folder:
        source = write_parquet(Path(folder) / "log.parquet", [row_of(event) for event in history.events])
        yield source, write_snapshot(Path(folder) / "snapshot", history.table), Path(folder) / "out"


@daily
@given(histories(), options, st.integers(1, 4))
@examples(20)
def test_histories_give_what_the_daemon_publishes(history: History, chosen: Options, part_events: int) -> None:
    expected, outcomes = published(history.events, dict(history.table), CATALOG, chosen)
    with written(history) as (source, read_back, out):
        converted(source, out, catalog=CATALOG, options=chosen, part_events=part_events, read_back=read_back)
        assert (elements_of(out), outcomes_of(out)) == (expected, outcomes)


def placed_elements_of(folder: Path) -> str:
    """Read the elements of all parts, by the folders steps have sent them to."""
    places: dict[str, str] = {}
    for part in sorted(folder.rglob("part-*.xml")):
        route = part.parent.relative_to(folder).as_posix()
        places[route] = places.get(route, "") + bare(part.read_text())
    return "".join(f"{'' if place == '.' else place}{text}" for place, text in sorted(places.items()))


@daily
@shares(told=0.2, filtered=0.02, routed=0.02)
@given(histories(), policies(), options, st.integers(1, 4))
@examples(20)
def test_policies_give_what_the_daemon_publishes_with_them(
    history: History, steps: Steps, chosen: Options, part_events: int
) -> None:
    try:
        expected, outcomes = published(history.events, dict(history.table), CATALOG, chosen, steps)
    except ConfigError as error:
        with pytest.raises(ConfigError, match=re.escape(str(error))):
            Policy(steps, CATALOG)
        return
    met(
        told=expected,
        filtered=any(one["reason"] == "filtered" for one in outcomes),
        routed="usr_" in expected or "to_" in expected or "all_of" in expected,
    )
    with written(history) as (source, read_back, out):
        told: dict[str, Any] = {"options": chosen, "part_events": part_events, "steps": steps}
        converted(source, out, catalog=CATALOG, read_back=read_back, **told)
        assert (placed_elements_of(out), outcomes_of(out)) == (expected, outcomes)


@daily
@shares(published=0.2)
@given(careless_logs(), options, st.sampled_from([CATALOG, None]))
@examples(20)
def test_careless_rows_give_what_the_daemon_publishes(
    events: list[Event], chosen: Options, catalog: Catalog | None
) -> None:
    expected, outcomes = published(events, None, catalog, chosen)
    met(published=expected)
    with TemporaryDirectory() as folder:
        source = write_lines(Path(folder) / "log.jsonl", [row_of(event) for event in events])
        summary = converted(source, Path(folder) / "out", catalog=catalog, options=chosen)
        assert (elements_of(Path(folder) / "out"), outcomes_of(Path(folder) / "out")) == (expected, outcomes)
        assert (summary.rows, sum(summary.statuses.values())) == (len(events), len(events))


@st.composite
def dealt(draw: st.DrawFn) -> tuple[History, list[list[LogRow]]]:
    """Draw a history, and its rows dealt out to a few files in any order."""
    history = draw(histories())
    rows = draw(st.permutations([row_of(event) for event in history.events]))
    places = draw(st.lists(st.integers(0, len(rows)), max_size=3).map(sorted))
    return history, [list(rows[start:end]) for start, end in zip([0, *places], [*places, len(rows)], strict=True)]


@daily
@given(dealt(), st.randoms(use_true_random=False))
@examples(20)
def test_neither_the_files_nor_their_order_nor_their_kind_matter(
    dealt_out: tuple[History, list[list[LogRow]]], random: Random
) -> None:
    history, files = dealt_out
    with TemporaryDirectory() as folder:
        place = Path(folder)
        read_back = write_snapshot(place / "snapshot", history.table)
        whole = write_parquet(place / "whole.parquet", [row for rows in files for row in rows])
        converted(whole, place / "one", catalog=CATALOG, read_back=read_back)
        parts = [_written(place / f"{number}", rows, random.randrange(4)) for number, rows in enumerate(files)]
        converted(parts, place / "several", catalog=CATALOG, read_back=read_back)
        assert files_of(place / "several") == files_of(place / "one")


def _written(stem: Path, rows: list[LogRow], kind: int) -> Path:
    columns = sorted(rows[0], reverse=True) if rows else list(row_of(Event(position=(1,), kind=1, table="", key="")))
    if kind == 0:
        return write_parquet(stem.with_suffix(".parquet"), rows, columns)
    if kind == 1:
        return write_csv(stem.with_suffix(".csv"), rows, columns)
    return write_lines(stem.with_suffix(".jsonl" if kind == 2 else ".jsonl.gz"), rows)


def daemons_messages(history: History) -> list[bytes]:
    """Write all changes at once in the daemon's format, and return the messages' values."""
    changes = decide(history.events, dict(history.table), catalog=CATALOG).changes
    told = encode_changes(MessageFormat(settings=MESSAGES, body=False), changes, CATALOG)
    messages = [one for document in told if isinstance(document, MessagesDocument) for one in document.messages]
    return [message.value or b"" for message in messages]


@daily
@given(histories(), st.integers(1, 4))
@examples(20)
def test_histories_give_the_daemons_messages(history: History, part_events: int) -> None:
    form = MessageFiles(settings=MESSAGES)
    with written(history) as (source, read_back, out):
        converted(source, out, catalog=CATALOG, part_events=part_events, read_back=read_back, target=form)
        found = [line for path in out.glob("*/part-*.jsonl") for line in path.read_bytes().splitlines()]
        found.sort(key=lambda value: str(json.loads(value)["headers"]["changeSequence"]))
        assert found == daemons_messages(history)


def test_messages_need_a_schema(tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "log.parquet", [log_row(1)])
    with pytest.raises(ConfigError, match="need to know tables"):
        converted(source, tmp_path / "out", catalog=None, target=MessageFiles())
