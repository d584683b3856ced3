"""A receiver that answers at random, after random delays, on several lanes: objects keep their order, answers count once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from random import Random
from threading import Lock
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import SinkError
from eventlog.core.model import Document, Event, Kind, Outcome, Position, Status
from eventlog.core.rules import Options
from eventlog.core.seams import Batch, SinkCapabilities
from eventlog.delivery import output as delivery
from eventlog.delivery.output import Output, Strictness
from eventlog.delivery.pipeline import Pipeline
from tests.support.examples import examples
from tests.support.memory import Several, UnaskedSink, answer, event
from tests.support.shares import met, shares
from tests.support.strategies import CATALOG

FINAL: Final = frozenset({Status.SUCCESS, Status.WARNING, Status.ERROR})
PATIENCE: Final = 3
"""Attempts after which the receiver takes everything and nothing fails."""


class Log:
    """Rows until they are settled: what stays comes again, with the notes about it; a batch not settled comes as it was."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.left = list(events)
        self.notes: dict[str, str] = {}
        self.letters: dict[Position, Status] = {}

    def read(self, limit: int) -> Batch:
        return Batch(events=list(self.left), catalog=CATALOG, notes=dict(self.notes))

    def note(self, notes: Mapping[str, str]) -> None:
        self.notes |= notes

    def settle(
        self,
        batch: Batch,
        outcomes: Sequence[Outcome],
        notes: Mapping[str, str] | None = None,
    ) -> None:
        self.letters |= {outcome.position: outcome.status for outcome in outcomes}
        self.left = [one for one in self.left if self.letters[one.position] is Status.NEW]
        self.notes = dict(notes or {})


class Whimsical(UnaskedSink):
    """Answers as dice say, and watches who comes while what is still to be taken."""

    @property
    def capabilities(self) -> SinkCapabilities:
        return SinkCapabilities(lanes=self.lanes)

    def __init__(self, lanes: int, dice: Random, objects: Mapping[Position, str]) -> None:
        self.lanes = [self] * lanes
        self.final: dict[Position, Status] = {}
        self.wrong: list[str] = []
        self.calm = False
        self.deaths = False
        self._dice = dice
        self._objects = objects
        self._attempts: dict[Position, int] = {}
        self._here: list[str] = []
        self._turn = Lock()

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        [document] = documents
        positions = [position for covered in document.covers.values() for position in covered]
        with self._turn:
            objects = {self._objects[position] for position in positions}
            self._look(positions, objects)
            self._here.extend(objects)
            pause, fates = self._dice.random() / 2000, [self._fate(position) for position in positions]
            lost = not self.calm and self._dice.random() < 0.05
        time.sleep(pause)
        with self._turn:
            for one in objects:
                self._here.remove(one)
            if lost:
                raise KeyboardInterrupt if self.deaths else SinkError("The line is cut.")
            self.final |= {p: fate for p, fate in zip(positions, fates, strict=True) if fate in FINAL}
        said = zip(positions, fates, strict=True)
        return [answer(position, fate) for position, fate in said if fate is not Status.SUCCESS]

    def break_off(self) -> None:
        """Nothing is on its way for long."""

    def _look(self, positions: Sequence[Position], objects: set[str]) -> None:
        """Notes what must not be: an object twice on its way, a change before an earlier one of its object was taken."""
        self.wrong += [f"{one} is on its way already" for one in objects if one in self._here]
        for position in positions:
            mine = self._objects[position]
            earlier = [p for p, one in self._objects.items() if one == mine and p < position and p not in positions]
            self.wrong += [f"{position} came before {p}" for p in earlier if p not in self.final]

    def _fate(self, position: Position) -> Status:
        self._attempts[position] = attempt = self._attempts.get(position, 0) + 1
        if self.calm or attempt > PATIENCE:
            return Status.SUCCESS
        return self._dice.choice([Status.SUCCESS] * 5 + [Status.WARNING, Status.ERROR, Status.NEW, Status.NEW])


def rows(objects: str) -> list[Event]:
    """A row of each of these objects, in turn of two kinds, so that each is a change of its own."""
    kinds = [Kind.UPDATE_FIELD, Kind.REPLACE_FIELD]
    seen = [objects[:number].count(one) % 2 for number, one in enumerate(objects)]
    return [event(n, kinds[turn], f"idu={one}") for n, (one, turn) in enumerate(zip(objects, seen, strict=True), 1)]


def rounds(pipeline: Pipeline, log: Log, sink: Whimsical) -> None:
    """Goes round until nothing is left, through failures and deaths, of which there are fewer and fewer."""
    for number in range(40):
        sink.calm = number > 20
        if not log.left:
            return
        with suppress(SinkError, KeyboardInterrupt):
            pipeline.go_round()
    pytest.fail(f"{len(log.left)} rows are left")


@pytest.mark.parametrize("deaths", [False, True], ids=["failures", "deaths"])
@shares(several=0.3)
@examples(150, deadline=None)
@given(
    objects=st.text("abc", min_size=1, max_size=24),
    dice=st.randoms(use_true_random=False),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 4)),
    by_object=st.booleans(),
)
def test_objects_keep_their_order_and_answers_count_once(
    deaths: bool, objects: str, dice: Random, shape: tuple[int, int, int], by_object: bool
) -> None:
    lanes, size, chunk = shape
    met(several=len(objects) > len(set(objects)))
    log = Log(rows(objects))
    sink = Whimsical(lanes, Random(dice.random()), {(n,): one for n, one in enumerate(objects, 1)})
    sink.deaths = deaths
    output = Output(format=Several(size), sink=sink, answers=True)
    strictness = Strictness(on_retry="object" if by_object else "stop")
    pipeline = Pipeline(source=log, outputs=[output], options=Options(), strictness=strictness)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "ANSWERED_DOCUMENTS", chunk)
        rounds(pipeline, log, sink)
    assert sink.wrong == []
    assert log.letters.keys() == sink.final.keys()
    assert deaths or log.letters == sink.final


def nobody_waits(documents: Sequence[object]) -> list[tuple[int, ...]]:
    return [() for _ in documents]


@pytest.mark.parametrize("sound", [True, False], ids=["as it is", "without waiting"])
def test_the_watch_notices_who_does_not_wait(sound: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would pass a change that nobody waits for is seen by the model."""
    if not sound:
        monkeypatch.setattr("eventlog.delivery.lanes.predecessors", nobody_waits)
    log = Log(rows("aaaaaaaaab"))
    sink = Whimsical(3, Random(1), {(n,): one for n, one in enumerate("aaaaaaaaab", 1)})
    sink.calm = True
    output = Output(format=Several(1), sink=sink, answers=True)
    Pipeline(source=log, outputs=[output], options=Options()).go_round()
    assert (sink.wrong == []) is sound
