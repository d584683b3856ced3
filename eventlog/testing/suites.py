"""What every sink, format and source must do, as tests that an author inherits: one fixture says
what is asked.

class TestWebhook(SinkSuite):
    @pytest.fixture
    def target(self, tmp_path):
        return SinkTarget(make=..., ids=...)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice, takewhile
from typing import Any

import pytest
from msgspec import Struct

from eventlog.core.errors import OccupiedError
from eventlog.core.model import ABSENT, Change, Document, Edit, Image, Op, Position, Refusal, RowId
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Format, Resolved, Sink, Tenure, encode
from eventlog.sources.stream.source import StreamReader


def tenure(epoch: int = 1, log: str = "log-of-tests") -> Tenure:
    """Make a tenure of a log's lock."""
    return Tenure(log=log, name=f"event log {log}", epoch=epoch)


def document(number: int) -> Document:
    """Make a document with one event, the number's."""
    body = b'<nds><input><add event-id="%d"/></input></nds>' % number
    return Document(id=f"{number:020d}", body=body, covers={str(number): ((number,),)})


class SinkTarget(Struct, frozen=True, kw_only=True):
    """A target for tests. `make` gives a new sink for it each time, as another publisher would have
    one; `ids` are the documents that stand there, in their order.
    """

    make: Callable[[], Sink]
    ids: Callable[[], Sequence[str]]
    document: Callable[[int], Document] = document

    def opened(self, epoch: int = 1) -> Sink:
        """Open a sink for the publisher of this epoch."""
        sink = self.make()
        sink.open(tenure(epoch))
        return sink

    def documents(self, *numbers: int) -> list[Document]:
        return [self.document(number) for number in numbers]

    def has(self, *numbers: int) -> bool:
        """Return True if exactly these documents are there, in this order."""
        return list(self.ids()) == [self.document(number).id for number in numbers]


class SinkSuite:
    """What a sink promises. Where its capabilities say that it resolves, it also knows plans and
    who may write.
    """

    @pytest.fixture
    def target(self) -> SinkTarget:
        """Return the target; each test gets a new one."""
        raise NotImplementedError("Override the fixture `target`.")

    @pytest.fixture
    def lasting(self, target: SinkTarget) -> SinkTarget:
        """Return the target; skip the test if it cannot be asked for its documents."""
        if not target.make().capabilities.resolves:
            pytest.skip("this target cannot be asked what it has")
        return target

    def test_one_that_was_never_opened_can_be_closed(self, target: SinkTarget) -> None:
        """Close it unused, as where another output of the configuration is wrong."""
        target.make().close()

    def test_an_empty_target_has_no_last_document(self, target: SinkTarget) -> None:
        sink = target.opened()
        assert sink.last() == ""
        assert not list(sink.commit("a", []))
        assert target.has()

    def test_documents_are_there_in_order_and_the_last_is_known(self, target: SinkTarget) -> None:
        sink = target.opened()
        assert not list(sink.commit("a", target.documents(1, 2)))
        sink.commit("b", target.documents(10))
        assert target.has(1, 2, 10)
        assert sink.last() == target.document(10).id
        sink.close()

    def test_what_is_prepared_is_unseen_until_it_is_committed(self, target: SinkTarget) -> None:
        sink = target.opened()
        for _ in range(2):
            sink.prepare("a", target.documents(1, 2))
        assert target.has()
        sink.commit("a", target.documents(1, 2))
        assert target.has(1, 2)

    def test_what_knows_nothing_says_so(self, target: SinkTarget) -> None:
        sink = target.opened()
        assert sink.resolve("a") == sink.resolve("") == Resolved()

    def test_a_plan_that_comes_again_is_there_once(self, lasting: SinkTarget) -> None:
        """Commit a plan again: in the same process, after closing it, and after a takeover."""
        sink, plan = lasting.opened(), lasting.documents(1, 2)
        sink.commit("a", plan)
        sink.commit("a", plan)
        sink.close()
        lasting.opened().commit("a", plan)
        heir = lasting.opened(2)
        heir.commit("a", plan)
        assert lasting.has(1, 2)
        heir.commit("b", lasting.documents(3))
        assert lasting.has(1, 2, 3)

    def test_the_target_says_which_plan_it_has(self, lasting: SinkTarget) -> None:
        lasting.opened().commit("a", lasting.documents(1, 2))
        for epoch in (1, 2):
            sink = lasting.opened(epoch)
            assert sink.resolve("a") == Resolved(last="a", documents=None)
            assert sink.resolve("b") == sink.resolve("") == Resolved(last="a")

    def test_what_was_prepared_and_not_committed_is_not_there(self, lasting: SinkTarget) -> None:
        """Prepare without a commit: neither a resolve after an error nor the next publisher finds
        it.
        """
        sink = lasting.opened()
        sink.commit("a", lasting.documents(1))
        sink.prepare("b", lasting.documents(2, 3))
        assert sink.resolve("b") == Resolved(last="a")
        sink.prepare("b", lasting.documents(2, 3))
        heir = lasting.opened(2)
        assert heir.resolve("b") == Resolved(last="a")
        heir.commit("c", lasting.documents(3))
        assert lasting.has(1, 3)

    def test_who_takes_over_knows_the_last_document(self, lasting: SinkTarget) -> None:
        lasting.opened().commit("a", lasting.documents(3, 11))
        assert lasting.opened(2).last() == lasting.document(11).id

    def test_a_publisher_that_was_replaced_writes_nothing_more(self, lasting: SinkTarget) -> None:
        former = lasting.opened()
        former.commit("a", lasting.documents(1))
        later = lasting.opened(2)
        later.commit("b", lasting.documents(2))
        for plan in ("b", "c"):
            with pytest.raises(OccupiedError):
                former.commit(plan, lasting.documents(3))
        with pytest.raises(OccupiedError):
            # Nor does it come back with the lock that it had.
            lasting.opened(1)
        later.commit("d", lasting.documents(4))
        assert lasting.has(1, 2, 4)

    def test_a_document_without_a_plan_leaves_the_plan_alone(self, lasting: SinkTarget) -> None:
        sink = lasting.opened()
        sink.commit("a", lasting.documents(1, 2))
        sink.commit("", [lasting.document(9)])
        assert sink.resolve("a").last == "a"
        sink.commit("a", lasting.documents(1, 2))
        assert len(lasting.ids()) <= 3


PEOPLE = Catalog(
    [
        Table(
            name="people",
            columns=(
                Column(name="id", type="bigint", key=1, nullable=False),
                Column(name="name", type="varchar(40)"),
                Column(name="age", type="integer"),
            ),
        )
    ]
)
"""The table of `changes`."""


def changes(count: int = 7) -> list[Change]:
    """Changes of people, as a publisher hands them to a format: adds, modifies and deletes."""
    made = []
    for number in range(1, count + 1):
        op = (Op.ADD, Op.MODIFY, Op.DELETE)[number % 3]
        edits: tuple[Edit, ...] = ()
        if op is Op.ADD:
            # A text with what XML and JSON have to escape, and with a letter outside ASCII.
            name = Edit(column="name", old=ABSENT, new="Zoë <&>")
            edits = (Edit(column="id", old=ABSENT, new=number), name)
        elif op is Op.MODIFY:
            edits = (Edit(column="id", old=number, new=number), Edit(column="name", old="Ada", new=None))
        row = RowId(None, "people", f"id={number}")
        made.append(Change(row=row, op=op, edits=edits, positions=((number,),), time="2025-03-23 10:57:19"))
    return made


class FormatSuite:
    """What a format promises: the same documents whoever writes them, whenever, and in however many
    pieces.
    """

    @pytest.fixture
    def form(self) -> Format:
        """Return the format under test."""
        raise NotImplementedError("Override the fixture `form`.")

    @pytest.fixture
    def changes(self) -> list[Change]:
        """Return the changes to write; override for a format with other ones."""
        return changes()

    @pytest.fixture
    def catalog(self) -> Catalog:
        """Return the tables of the changes."""
        return PEOPLE

    def test_each_change_is_in_one_document_or_refused(
        self, form: Format, changes: list[Change], catalog: Catalog
    ) -> None:
        covered: list[Position] = []
        for made in encode(form, changes, catalog):
            if isinstance(made, Refusal):
                if not made.partial:  # else its document comes too
                    covered += made.positions
            else:
                covered += [position for positions in made.covers.values() for position in positions]
        assert sorted(covered) == sorted(position for change in changes for position in change.positions)

    def test_it_is_the_same_whenever_it_is_written(
        self,
        form: Format,
        changes: list[Change],
        catalog: Catalog,
    ) -> None:
        assert list(encode(form, changes, catalog)) == list(encode(form, changes, catalog))

    def test_changes_may_be_written_in_parts(
        self,
        form: Format,
        changes: list[Change],
        catalog: Catalog,
    ) -> None:
        parts, write = [changes[:3], changes[3:4], changes[4:]], form.writer(catalog)
        written = [item for part in parts for item in write(part) if not isinstance(item, Refusal)]
        whole = [made for made in encode(form, changes, catalog) if isinstance(made, Document)]
        bound = [(made.id, made.body, made.covers) for made in form.bind(written, "")]
        assert bound == [(made.id, made.body, made.covers) for made in whole]

    def test_ids_rise_and_go_on_behind_the_last_one(
        self, form: Format, changes: list[Change], catalog: Catalog
    ) -> None:
        first, second = changes[:4], changes[4:]
        ids = _ids(encode(form, first, catalog))
        ids += _ids(encode(form, second, catalog, after=ids[-1]))
        assert ids == sorted(set(ids))

    def test_a_document_that_is_repeated_stays_one(
        self,
        form: Format,
        changes: list[Change],
        catalog: Catalog,
    ) -> None:
        assert len(_ids(encode(form, changes, catalog, whole=True))) == 1

    def test_no_changes_are_no_documents(self, form: Format, catalog: Catalog) -> None:
        assert list(encode(form, [], catalog)) == []
        assert form.suffix.startswith(".")


def _ids(made: Iterable[Document | Refusal]) -> list[str]:
    return [document.id for document in made if isinstance(document, Document)]


class SourceStream(Struct, frozen=True, kw_only=True):
    """A stream for tests. `make` gives a new reader of it; `grow` commits two transactions or more
    there, with a change each at least.
    """

    make: Callable[[], StreamReader]
    grow: Callable[[], Any]


class SourceSuite:
    """What the reader of a stream promises: who begins at a place that it gave gets all that
    follows, as it was.
    """

    @pytest.fixture
    def stream(self) -> SourceStream:
        """Return the stream under test, empty."""
        raise NotImplementedError("Override the fixture `stream`.")

    def test_images_come_in_order(self, stream: SourceStream) -> None:
        stream.grow()
        images = _read(stream.make(), 0)
        positions = [image.position for _, image in images]
        assert positions
        assert positions == sorted(set(positions))
        assert all(len(position) == len(positions[0]) for position in positions)

    def test_an_empty_stream_waits_and_goes_on(self, stream: SourceStream) -> None:
        reader = stream.make()
        pieces = reader.pieces(0)
        assert next(pieces) is None
        stream.grow()
        assert any(piece is not None and piece.images for piece in islice(pieces, 100))
        reader.close()

    def test_it_is_the_same_whenever_it_is_read(self, stream: SourceStream) -> None:
        stream.grow()
        assert _read(stream.make(), 0) == _read(stream.make(), 0)

    def test_who_begins_at_a_place_gets_what_follows(self, stream: SourceStream) -> None:
        stream.grow()
        stream.grow()
        images = _read(stream.make(), 0)
        starts = list(dict.fromkeys(begin for begin, _ in images if begin is not None))
        assert len(starts) >= 2, "a stream of several transactions has places between them"
        for start in starts:
            behind = 1 + max(number for number, (begin, _) in enumerate(images) if begin == start)
            again = [image for _, image in _read(stream.make(), start)]
            follow = [image for _, image in images[behind:]]
            assert again[len(again) - len(follow) :] == follow
            # A transaction that was open there may make the reader begin before it.
            known = [image for _, image in images[:behind]]
            assert all(image in known for image in again[: len(again) - len(follow)])

    def test_its_images_fit_their_tables(self, stream: SourceStream) -> None:
        stream.grow()
        reader = stream.make()
        # Up to the first None: behind that a reader may wait for what comes.
        for piece in takewhile(lambda piece: piece is not None, reader.pieces(0)):
            assert piece is not None
            for image in piece.images:
                described = piece.catalog.find(image.table)
                assert described is not None, image.table
                names = {column.name for column in described.table.columns}
                assert names >= {*(image.before or ()), *(image.after or ())}
        reader.acknowledge((), 0)
        reader.close()


def _read(reader: StreamReader, begin: int) -> list[tuple[int | None, Image]]:
    """Read the images there now, each with the position after its piece."""
    images: list[tuple[int | None, Image]] = []
    for piece in reader.pieces(begin):
        if piece is None:
            break
        images += [(piece.begin, image) for image in piece.images]
    reader.close()
    return images


__all__ = [
    "PEOPLE",
    "FormatSuite",
    "SinkSuite",
    "SinkTarget",
    "SourceStream",
    "SourceSuite",
    "changes",
    "document",
    "tenure",
]
