"""Sessions that write at the same time draw their numbers in turn: a batch ends between changes and never within one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sqlalchemy import Engine

from eventlog.core.model import Event, Outcome, Status
from eventlog.sources.log.reading import LogSettings, end_with_a_change, find_torn_places
from tests.conformance.event_logs import LogTable, installed
from tests.support.examples import examples
from tests.support.log_rows import LogRows, TakenRows

COLUMNS = ("a", "b", "c")
MOST_ROWS = 7
"""Of a batch; one that is shorter than what changes have open at the same time has more rows than it is to have."""


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return installed(engine)


def rows(*told: str) -> list[tuple[object, ...]]:
    """Make the rows of a log, each given as its object and its column: `1a`."""
    return [(number, 2, "usr", f"idu={one[0]}", one[1:] or None) for number, one in enumerate(told)]


@pytest.mark.parametrize(
    "told, end, torn",
    [
        (["1a", "2a", "1b", "2b"], 1, {0}),
        (["3a", "1a", "2a", "1b", "2b"], 2, {1}),
        (["3a", "1a", "2a", "1b", "2b"], 3, {1, 2}),
        (["3a", "1a", "2a", "1b", "2b"], 4, {2}),
        (["3a", "1a", "2a", "1b", "2b"], 5, set()),
        (["3a", "1a", "2a", "1a"], 2, set()),  # the same column is another change
        (["1a", "1b", "1a", "2a", "1b"], 3, {2}),
        (["1a", "1b", "1c", "1a", "2a", "1b"], 4, {3}),
        (["3a", "1", "2a", "1b"], 2, set()),  # a row without a column is a change by itself
        (["3a", "1a", "2a", "1"], 2, set()),
    ],
)
def test_rows_of_a_change_that_goes_on_are_left(told: Sequence[str], end: int, torn: set[int]) -> None:
    assert find_torn_places(rows(*told), end) == torn


@pytest.mark.parametrize("end, whole", [(1, 3), (2, 3), (3, 3), (4, 4)])
def test_a_batch_has_a_whole_change_however_few_rows_it_is_to_have(end: int, whole: int) -> None:
    assert end_with_a_change(rows("1a", "2a", "1b", "2b"), end) == whole


@st.composite
def turns(draw: st.DrawFn) -> list[tuple[str, str, int]]:
    """Draw the rows of three sessions in some order; each session has its own objects, and each change names all
    columns.
    """
    left = {session: draw(st.integers(1, 6)) * len(COLUMNS) for session in range(3)}
    written = dict.fromkeys(left, 0)
    found = []
    while left:
        session = draw(st.sampled_from(sorted(left)))
        change, place = divmod(written[session], len(COLUMNS))
        found.append((f"idu={session}", COLUMNS[place], change))
        written[session] += 1
        left[session] -= 1
        if not left[session]:
            del left[session]
    return found


@examples(15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns(), st.integers(1, MOST_ROWS))
def test_no_batch_ends_within_a_change(log: LogTable, told: list[tuple[str, str, int]], limit: int) -> None:
    batches = list(read_in_turn(log, told, limit))
    places: dict[tuple[str, str], list[int]] = {}
    for number, batch in enumerate(batches):
        for event in batch.events:
            assert isinstance(event, Event)
            places.setdefault((str(event.key), str(event.new)), []).append(number)
    assert all(len(found) == len(COLUMNS) and len({*found}) == 1 for found in places.values())
    order = [event.position[0] for batch in batches for event in batch.events]
    for key in {key for key, _, _ in told}:
        mine = [number for number, (other, _, _) in enumerate(told, 1) if other == key]
        assert [number for number in order if number in mine] == mine


def read_in_turn(log: LogTable, told: list[tuple[str, str, int]], limit: int) -> Iterator[TakenRows]:
    """Read and settle batches until no row waits."""
    for table in (log.names.table, log.names.outcomes, log.names.marks, *log.names.journal.values()):
        log.run(f"DELETE FROM {table}")
    for number, (key, column, change) in enumerate(told, 1):
        log.write(number, key=key, event_type=2, column_name=column, new_value=str(change))
    source = LogRows(log.engine, log.names, settings=LogSettings())
    while (batch := source.read(limit)).events:
        yield batch
        source.settle(batch, [Outcome(position=event.position, status=Status.SUCCESS) for event in batch.events])
