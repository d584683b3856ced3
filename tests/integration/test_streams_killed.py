"""A publisher of a stream that is killed at named points: each image is once at each output, in the stream's order."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eventlog.config.build import outputs_of
from eventlog.config.settings import from_settings
from eventlog.core.backoff import Backoff
from eventlog.core.model import Captured, Document, Image, Op, Outcome, Position, Reason, Status, Transaction
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Resolved, SinkCapabilities
from eventlog.delivery.answers import Strictness
from eventlog.delivery.output import Output
from eventlog.publisher.journal import Journal
from eventlog.sources.log.lock import LogLock
from eventlog.sources.stream.source import StreamPiece
from tests.support.captured import StreamPublisher
from tests.support.memory import OneEach, UnaskedSink
from tests.support.sinks import KilledError

TABLES = Catalog(
    [Table(name="t", columns=(Column(name="id", type="integer", key=1), Column(name="a", type="integer")))]
)


class GrowingStream:
    """Transactions that end at places 10, 20, … in pieces of two images; there are so many of them now."""

    def __init__(self, dice: random.Random, truncates: float = 0.0) -> None:
        self.images: list[list[Image]] = []
        self.dice = dice
        self.truncates = truncates

    def grow(self) -> None:
        end = 10 * (len(self.images) + 1)
        made: list[Image] = []
        for number in range(1, self.dice.randint(1, 5)):
            row = {"id": self.dice.randint(1, 4), "a": number}
            op = Op.TRUNCATE if self.dice.random() < self.truncates else Op.ADD
            image = Image(
                position=(end, number, 0),
                op=op,
                table="t",
                after=None if op is Op.TRUNCATE else row,
                transaction=Transaction(id=end),
            )
            made.append(image)
        self.images.append(made)

    @property
    def positions(self) -> list[str]:
        return [".".join(map(str, image.position)) for several in self.images for image in several]

    @property
    def rows(self) -> list[str]:
        """The numbers of their rows in the log, which outputs know them by."""
        return [str(number) for number, _ in enumerate(self.positions, 1)]

    def pieces(self, begin: int) -> Iterator[StreamPiece | None]:
        at = 0
        while True:
            if at >= len(self.images):
                yield None
                continue
            end, images = 10 * (at + 1), self.images[at]
            at += 1
            if end < begin:
                continue
            for start in range(0, max(len(images), 1), 2):
                last = start + 2 >= len(images)
                yield StreamPiece(
                    images=images[start : start + 2], catalog=TABLES, commit=end, begin=end + 1 if last else None
                )

    def acknowledge(self, images: Sequence[Captured], begin: int) -> None:
        """A server keeps its logs."""

    def close(self) -> None:
        """Nothing to give back."""


class Points:
    """Where a publisher dies by chance, and how often it did."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.likely = 0.06
        self.deaths: dict[str, int] = {}

    def pass_by(self, name: str) -> None:
        if self.dice.random() < self.likely:
            self.deaths[name] = self.deaths.get(name, 0) + 1
            raise KilledError

    def around(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def passed(*arguments: Any, **more: Any) -> Any:
            self.pass_by(f"before {name}")
            found = function(*arguments, **more)
            self.pass_by(f"after {name}")
            return found

        return passed


@pytest.fixture
def points(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Points:
    made = Points(random.Random(request.node.name))
    for cls, name in ((LogLock, "mark"), (Journal, "plan"), (Journal, "done"), (GrowingStream, "acknowledge")):
        monkeypatch.setattr(cls, name, made.around(getattr(cls, name), name))
    return made


def history(
    points: Points, path: Path, stream: GrowingStream, outputs: Callable[[], list[Output]], strictness: Strictness
) -> StreamPublisher:
    """Begins, captures, publishes and dies, until there is nothing left."""

    def opened() -> list[Output]:
        found = outputs()
        for output in found:
            output.sink.commit = points.around(output.sink.commit, "commit")  # type: ignore[method-assign]  # as said
        return found

    likely, points.likely = points.likely, 0.0
    going = StreamPublisher(
        stream,
        path,
        opened(),
        limit=points.dice.randint(1, 8),
        strictness=strictness,
        backoff=Backoff(first=0.02, longest=0.04),
    )
    points.likely = likely
    for _ in range(70):
        if points.dice.random() < 0.4:
            stream.grow()
        try:
            going.turn()
        except KilledError:
            for output in going.outputs:
                output.sink.close()
            points.likely = 0.0
            going.outputs = opened()
            going.begin()
            points.likely = likely
    points.likely = 0.0
    going.run()
    return going


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(8))
def test_files_change_files_and_a_database_have_each_image_once(seed: int, points: Points, tmp_path: Path) -> None:
    lake = tmp_path / "lake.db"
    config = from_settings(
        {
            "source": {"kind": "gbase", "gbase": {"path": "none", "marks": str(tmp_path / "marks.json")}},
            "output": [
                {"sink": "files", "path": str(tmp_path / "xds")},
                {"sink": "files", "path": str(tmp_path / "ct"), "format": "change-tables", "file_format": "csv"},
                {"sink": "database", "url": f"sqlite:///{lake}"},
            ],
        },
        {},
        origin="the test",
    )
    stream = GrowingStream(points.dice)
    going = history(points, tmp_path / "log.db", stream, lambda: outputs_of(config), Strictness())
    assert going.left() == {}
    documents = [path.read_text() for path in sorted((tmp_path / "xds").glob("*.xml"))]
    assert re.findall(r'event-id="([\d.]+)"', "".join(documents)) == stream.rows
    rows: list[str] = []
    for file in sorted((tmp_path / "ct").glob("t__ct/*.csv")):
        rows += [match[0] for line in file.read_text().splitlines() if (match := re.search(r"\d+\.\d+\.0", line))]
    assert rows == stream.positions
    with closing(sqlite3.connect(lake)) as connection:
        told = connection.execute("SELECT header__stream_position FROM t__ct ORDER BY header__change_seq").fetchall()
    assert [position for (position,) in told] == stream.positions
    assert points.deaths
    going.close()


class Choosy(UnaskedSink):
    """Takes documents, and asks for some of them again."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.taken: dict[str, str] = {}
        """What was taken, in its order: a document that comes again under its id is known."""

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        said: list[Outcome] = []
        for document in documents:
            [covered] = document.covers.values()
            if document.id not in self.taken and self.dice.random() < 0.3:
                said += [Outcome(position=one, status=Status.NEW, reason=Reason.RETRY) for one in covered]
            else:
                self.taken.setdefault(document.id, document.body.decode())
        return said


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(8))
def test_what_a_receiver_wants_again_is_passed_by_no_later_change_of_its_object_nor_by_an_emptied_table(
    seed: int, points: Points, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.publisher.selection.EVERY_ROW_SECONDS", 0.01)
    stream = GrowingStream(points.dice, truncates=0.15)
    receiver = Choosy(points.dice)
    going = history(
        points,
        tmp_path / "log.db",
        stream,
        lambda: [Output(format=OneEach(), sink=receiver, answers=True)],
        Strictness(on_retry="object"),
    )
    assert going.left() == {}
    came = list(receiver.taken)
    assert sorted(came) == sorted(stream.rows)
    rows = dict(zip(stream.positions, stream.rows, strict=True))
    place = {position: came.index(row) for position, row in rows.items()}
    images = [image for several in stream.images for image in several]
    by_object: dict[Any, Position] = {}
    for image in images:
        row = None if image.after is None else image.after["id"]
        here = place[".".join(map(str, image.position))]
        before = [former for key, former in by_object.items() if row is None or key in (None, row)]
        late = [former for former in before if place[".".join(map(str, former))] > here]
        assert late == [], f"{image} came before them, at {here} of {came}"
        if row is None:
            by_object.clear()
        by_object[row] = image.position
    assert points.deaths
    going.close()


class Answering(UnaskedSink):
    """A target that can be asked which plan it has, and says of images what it refuses."""

    def __init__(self) -> None:
        self.plan = ""
        self.answers: tuple[Outcome, ...] = ()
        self.taken: list[str] = []

    @property
    def capabilities(self) -> SinkCapabilities:
        return SinkCapabilities(resolves=True)

    def resolve(self, plan: str) -> Resolved:
        if plan and plan == self.plan:
            return Resolved(last=self.plan, documents=None, answers=self.answers)
        return Resolved(last=self.plan)

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        self.plan = plan
        self.taken += [document.id for document in documents]
        said = [Outcome(position=(1,), status=Status.ERROR, reason=Reason.REFUSED, note="no such group")]
        self.answers = tuple(said)
        return said


@pytest.mark.parametrize("dies", [False, True])
def test_what_a_target_refuses_is_the_letter_of_the_row_also_after_a_crash(
    dies: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = GrowingStream(random.Random(2))
    stream.images = [[Image(position=(10, number, 0), op=Op.ADD, table="t", after={"id": number}) for number in (1, 2)]]
    target = Answering()
    going = StreamPublisher(stream, tmp_path / "log.db", [Output(format=OneEach(), sink=target)])
    if dies:
        with monkeypatch.context() as patched:
            patched.setattr(Journal, "done", Points(random.Random(0)).around(Journal.done, "done"))
            patched.setattr(Points, "pass_by", _die)
            with pytest.raises(KilledError):
                going.turn()
        going.begin()
    going.run()
    with going.engine.connect() as connection:
        statuses = connection.exec_driver_sql("SELECT record_id, status FROM event_log").fetchall()
        notes = connection.exec_driver_sql("SELECT record_id, note FROM event_log_outcome").fetchall()
    assert statuses == [(1, "E")]
    assert notes == [(1, "no such group")]
    assert target.taken == ["1", "2"]
    going.close()


def _die(_points: Points, _name: str) -> None:
    raise KilledError
