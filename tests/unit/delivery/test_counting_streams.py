"""What is counted of a stream's transactions: 1 to n and one last, also where the last image is refused or a batch cuts it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import SinkError
from eventlog.core.model import Captured, Image, Op, Transaction
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog
from eventlog.core.seams import Format
from eventlog.delivery.output import Output
from eventlog.sources.stream.source import StreamPiece
from tests.support.captured import StreamPublisher
from tests.support.examples import examples
from tests.support.shares import met, shares
from tests.unit.delivery.test_counting import OURS, SENDS, Topic, runs

TOLD, REFUSED, INVALID, OURSELVES = "told", "refused", "invalid", "ourselves"
OTHER = Catalog([*OURS])


class Committed:
    """Transactions that end at places 10, 20, …, in pieces of so many images; their numbers are used again."""

    def __init__(self, made: Sequence[Sequence[str]], size: int) -> None:
        self.made = made
        self.size = size

    def pieces(self, begin: int) -> Iterator[StreamPiece | None]:
        for place, whats in enumerate(self.made, 1):
            end = 10 * place
            if end < begin:
                continue
            transaction = Transaction(id=place % 2, end=end)
            images = [
                Image(
                    position=(end, number, 0),
                    op=Op.ADD,
                    table="t",
                    after={"id": number % 3, "a": "no number" if what == REFUSED else number, "b": None},
                    fault="It cannot be read." if what == INVALID else None,
                    perpetrator="me" if what == OURSELVES else None,
                    transaction=transaction,
                )
                for number, what in enumerate(whats)
            ]
            for start in range(0, max(len(images), 1), self.size):
                some, last = images[start : start + self.size], start + self.size >= len(images)
                known = OTHER if (place + start) % 3 == 0 else OURS
                yield StreamPiece(images=some, catalog=known, commit=end, begin=end + 1 if last else None)
        while True:
            yield None

    def acknowledge(self, images: Sequence[Captured], begin: int) -> None:
        """Nobody has to know."""

    def close(self) -> None:
        """Nothing to give back."""


def publish(
    made: Sequence[Sequence[str]],
    size: int,
    limit: int,
    fails: Sequence[str | None],
    form: Format = SENDS,
) -> Topic:
    """All of it, with a publisher that is started anew after each failure."""
    topic, failures = Topic(), iter(fails)
    outputs = [Output(format=form, sink=topic)]
    with TemporaryDirectory() as folder:
        going = StreamPublisher(
            Committed(made, size), Path(folder) / "log.db", outputs, limit=limit, options=Options(user="me")
        )
        for _ in range(1000):
            topic.fails = next(failures, None)
            try:
                moved = going.turn()
            except SinkError:
                going.begin()
                continue
            if topic.fails == "after":  # it was not asked, so the publisher is just killed
                going.begin()
            elif not moved:
                assert going.left().keys() <= {""}, "only errors stay"
                going.close()
                return topic
    raise AssertionError("it never ends")


MADE = (
    st.lists(st.lists(st.sampled_from([TOLD, TOLD, REFUSED, INVALID, OURSELVES]), max_size=7), max_size=5),
    st.integers(1, 4),
    st.integers(1, 5),
    st.lists(st.sampled_from([None, None, "before", "after"]), max_size=6),
)


@shares(told=0.3, cut=0.05)
@given(*MADE)
@examples(40)
def test_each_transaction_has_1_to_n_and_one_last(
    made: list[list[str]], size: int, limit: int, fails: list[str | None]
) -> None:
    told = publish(made, size, limit, fails).told()
    met(told=told, cut=any(whats.count(TOLD) > limit for whats in made))
    for number in (0, 1):
        several = [whats for place, whats in enumerate(made, 1) if place % 2 == number and TOLD in whats]
        places = told.get(number, [])
        assert runs(places) == len(several)
        assert len(places) == sum(whats.count(TOLD) for whats in several)
