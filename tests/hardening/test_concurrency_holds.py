"""Rows are held and released between any two statements of a publisher: no later row of their object goes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event

from eventlog.admin.rows import EVERYTHING, hold, release
from eventlog.core.errors import SourceError
from eventlog.core.model import Event
from eventlog.core.seams import Batch
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.log.source import LogSource
from eventlog.sql.log import Log
from tests.conformance.event_logs import installed

MOST = 12
"""More statements than any reading has."""
FIRST, LATER, OTHER = 5, 8, 9
"""Two rows of one object, and one of another."""


class Desk:
    """A log with three rows, whoever reads it, and an operator with a connection of their own."""

    def __init__(self, engine: Engine, *, seated: bool) -> None:
        self.rows = installed(engine)
        for number, key in ((FIRST, "idu=1"), (LATER, 'IDU="1"'), (OTHER, "idu=2")):
            self.rows.write(number, key)
        self.lock = LogLock(Log(engine, self.rows.names), 30.0) if seated else None
        assert self.lock is None or self.lock.take()
        embedded = engine.dialect.name == "sqlite"
        self.operator = create_engine(engine.url, connect_args={"timeout": 0} if embedded else {})
        self.log = Log(self.operator, self.rows.names)
        self.source = self.reader()

    def reader(self) -> LogSource:
        """A source, as a process that has just started has it."""
        return LogSource(self.rows.engine, self.rows.names, settings=LogSettings(on_retry="object"), lock=self.lock)

    def hold(self) -> None:
        assert hold(self.log, [(FIRST, FIRST)]) == 1

    def release(self) -> None:
        release(self.log, [EVERYTHING])

    def close(self) -> None:
        if self.lock is not None:
            self.lock.leave()
        self.operator.dispose()


Acts = tuple[str, ...]
ACTS: Mapping[str, Acts] = {"hold": ("hold",), "release": ("release",), "both": ("hold", "release")}
AROUND: Sequence[tuple[bool, Acts, Acts]] = (
    (False, ("hold",), ()),
    (False, (), ("hold",)),
    (False, ("hold",), ("release",)),
    (True, ("release",), ()),
    (True, (), ("release",)),
)
"""Whether the row is held at first; what comes before and after rows are read ahead."""


@pytest.fixture
def desk(engine: Engine, request: pytest.FixtureRequest) -> Iterator[Desk]:
    found = Desk(engine, seated=getattr(request, "param", True))
    yield found
    found.close()


@contextmanager
def meanwhile(desk: Desk, acts: Mapping[int, str]) -> Iterator[Callable[[], int]]:
    """Does each act just before the statement with its number; tells how many statements there were."""
    seen: list[str] = []

    def before(_: Any, __: Any, sql: str, *___: Any) -> None:
        seen.append(sql)
        if act := acts.get(len(seen)):
            with suppress(SourceError) if desk.operator.dialect.name == "sqlite" else nullcontext():
                getattr(desk, act)()  # where there is one writer at a time, an operator waits for it

    event.listen(desk.rows.engine, "before_cursor_execute", before)
    try:
        yield lambda: len(seen)
    finally:
        event.remove(desk.rows.engine, "before_cursor_execute", before)


def numbers(batch: Batch) -> list[int]:
    return [row.position[0] for row in batch.events]


def in_order(found: list[int]) -> bool:
    """Whether the later row did not come without the first, and the other object's did."""
    return (FIRST in found or LATER not in found) and OTHER in found


def pairs(acts: Acts, last: int) -> list[dict[int, str]]:
    """Every way to spread one or two acts over so many statements."""
    if len(acts) == 1:
        return [{place: acts[0]} for place in range(1, last + 1)]
    return [{one: acts[0], two: acts[1]} for one in range(1, last + 1) for two in range(one + 1, last + 1)]


def statements(desk: Desk, source: LogSource) -> int:
    """How many statements a reading has, when nobody disturbs it."""
    with meanwhile(desk, {}) as count:
        source.read(0)
        return count()


def begun(desk: Desk, acts: str, *, repeated: bool) -> LogSource:
    """A source that has read nothing yet; `repeated` says that a batch is in hand."""
    desk.release()
    desk.rows.run("DELETE FROM event_log_mark WHERE name = 'in hand'")
    source = desk.reader()
    if repeated:
        assert numbers(source.read(0)) == [FIRST, LATER, OTHER]
    if acts == "release":
        desk.hold()
    return source


@pytest.mark.parametrize("repeated", [False, True], ids=["new", "repeated"])
@pytest.mark.parametrize("desk", [True, False], ids=["seated", "alone"], indirect=True)
def test_no_row_goes_before_a_held_one_of_its_object(desk: Desk, repeated: bool) -> None:
    for acts in ACTS:
        last = statements(desk, begun(desk, acts, repeated=repeated))
        assert 2 <= last <= MOST
        for spread in pairs(ACTS[acts], last):
            source = begun(desk, acts, repeated=repeated)
            with meanwhile(desk, spread):
                found = numbers(source.read(0))
            assert in_order(found), (spread, found)


def test_what_is_held_before_a_reading_begins_is_not_handed_out(desk: Desk) -> None:
    desk.hold()
    assert numbers(desk.source.read(0)) == [OTHER]
    desk.release()
    assert numbers(desk.source.read(0)) == [OTHER], "it is in hand"
    desk.rows.run(f"UPDATE event_log SET status = 'S' WHERE record_id = {OTHER}")
    assert numbers(desk.source.read(0)) == [FIRST, LATER]


def test_who_holds_a_row_of_the_batch_in_hand_holds_what_comes_after_it(desk: Desk) -> None:
    assert numbers(desk.source.read(0)) == [FIRST, LATER, OTHER]
    desk.hold()
    assert numbers(desk.reader().read(0)) == [OTHER]


def test_nothing_is_read_ahead_of_a_held_row(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.rows.write(1, "idu=0")
    ask = desk.source.log.rows_at_once
    before: Acts = ()
    after: Acts = ()

    def disturbed(*args: Any) -> Any:
        for act in before:
            getattr(desk, act)()
        found = ask(*args)
        for act in after:
            getattr(desk, act)()
        return found

    monkeypatch.setattr(desk.source.log, "rows_at_once", disturbed)
    for first, before, after in AROUND:
        desk.release()
        if first:
            desk.hold()
        assert numbers(desk.source.read(1)) == [1]
        ahead = desk.source.read_ahead(9, [Batch(events=[Event(position=(1,), kind=1, table="usr", key="idu=0")])])
        assert FIRST in numbers(ahead) or LATER not in numbers(ahead), (first, before, after)


def test_the_check_sees_a_reader_that_does_not_look(postgresql: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(postgresql, seated=False)
    monkeypatch.setattr(type(desk.source._left_out), "stand", lambda *_: True)
    wrong = []
    for place in range(1, statements(desk, desk.source) + 1):
        source = begun(desk, "hold", repeated=False)
        with meanwhile(desk, {place: "hold"}):
            wrong.append(not in_order(numbers(source.read(0))))
    desk.close()
    assert any(wrong)
