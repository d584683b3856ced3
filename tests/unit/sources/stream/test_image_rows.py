"""An image of a stream is a row of its log as an image of a trigger is: the same text, the same way, the same bytes out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.core.model import ABSENT, Captured, Change, Edit, Event, Image, Op, Reason, Refusal, Status, Transaction
from eventlog.core.rules import Options, Round
from eventlog.core.rules.images import decode_image, encode_image, open_images
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Format, encode
from eventlog.publisher.decide import parts_of
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog.qlik.readings import reading
from eventlog.sources.stream.definitions import read_catalog
from eventlog.sources.stream.images import decide_images
from eventlog.sources.stream.source import StreamPiece
from eventlog.sources.stream.texts import TextWriter, write_text
from eventlog.xds.write import XdsFormat
from tests.support.captured import Capturing
from tests.support.examples import examples
from tests.support.shares import met, shares

TYPES: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-(2**31), 2**31 - 1),
    "decimal(12,2)": st.integers(-(10**9), 10**9).map(lambda number: Decimal(number).scaleb(-2)),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "varchar(20)": st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cn", "Cc"]), max_size=5),
    "byte": st.binary(max_size=5),
    "date": st.dates(min_value=dt.date(1970, 1, 2), max_value=dt.date(2100, 1, 1)),
    "datetime year to fraction(5)": st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2100, 1, 1)),
}
NAMES = [f"c{number}" for number, _ in enumerate(TYPES)]
USR = Table(
    name="usr",
    columns=(
        Column(name="id", type="integer", key=1),
        *(Column(name=name, type=kind) for name, kind in zip(NAMES, TYPES, strict=True)),
    ),
)
KNOWN = Catalog([USR, Table(name="bare", columns=(Column(name="a"),))])
ROWS = st.fixed_dictionaries({name: st.none() | values for name, values in zip(NAMES, TYPES.values(), strict=True)})
FORMATS: list[Format] = [XdsFormat(), ChangeTableFormat(), MessageFormat(settings=MessageSettings())]


class Given:
    """A stream of one transaction."""

    def __init__(self, images: Sequence[Image], catalog: Catalog = KNOWN) -> None:
        self.images = images
        self.catalog = catalog

    def pieces(self, begin: int) -> Iterator[StreamPiece | None]:
        if not begin:
            yield StreamPiece(images=self.images, catalog=self.catalog, commit=1, begin=2)
        while True:
            yield None

    def acknowledge(self, images: Sequence[Captured], begin: int) -> None:
        """Nobody has to know."""

    def close(self) -> None:
        """Nothing to give back."""


def captured(folder: Path, *images: Image, damage: str = "") -> tuple[Catalog, list[Event]]:
    """The rows of the log that the images are captured into, and the tables that it knows; `damage` is done to it."""
    going = Capturing(Given(images), folder / "log.db")
    while going.capture():
        pass
    with going.engine.begin() as connection:
        if damage:
            connection.exec_driver_sql(damage)
        rows = [*going.waiting(connection)]
    catalog = read_catalog(going.log.log)
    going.close()
    return catalog, rows


def decided(catalog: Catalog, rows: Sequence[Event]) -> tuple[list[Change], dict[int, tuple[Reason, str | None]]]:
    parts = parts_of(Round(catalog=catalog), [rows])
    outcomes = [outcome for part in parts for outcome in part.decision.outcomes]
    others: dict[int, tuple[Reason, str | None]] = {}
    others |= {one.position[0]: (one.reason, one.note) for one in outcomes if one.reason is not Reason.PUBLISHED}
    return [change for part in parts for change in part.decision.changes], others


def image(op: Op, before: Any = None, after: Any = None, at: int = 1, **facts: Any) -> Image:
    finished: dict[str, Any] = {
        "table": "usr",
        "time": dt.datetime(2026, 1, 2, 3, 4, 5),
        "transaction": Transaction(id=77, time=dt.datetime(2026, 1, 2, 3, 4, 6), end=5),
        "stream": f"11:0x{at}",
        "perpetrator": "ann",
    }
    return Image(position=(1, at, 0), op=op, before=before, after=after, **(finished | facts))


def told(form: Format, changes: Sequence[Change], catalog: Catalog) -> list[object]:
    """What a format makes of changes, without the numbers by which the log and the stream know them."""
    made: list[object] = []
    for change in changes:
        # Counted from the number that the log has given, which the stream does not know.
        transaction = None if change.transaction is None else replace(change.transaction, row=None)
        for item in encode(form, [replace(change, positions=((1,),), transaction=transaction)], catalog):
            made += [item.note if isinstance(item, Refusal) else item.body, getattr(item, "parts", None)]
    return made


def assert_a_dump_tells_the_same(*images: Image) -> None:
    """What a conversion makes of a dump is what a publisher makes of the log that it would be captured into."""
    with TemporaryDirectory() as folder:
        catalog, rows = captured(Path(folder), *images)
    changes, others = decided(catalog, rows)
    decision = decide_images(images, KNOWN, Options())
    numbers = {one.position: number for number, one in enumerate(images, 1)}
    reasons = {numbers[place]: (one.reason, one.note) for place, one in decision.outcomes.others.items()}
    assert others == reasons
    for form in FORMATS:
        assert told(form, changes, catalog) == told(form, decision.changes, KNOWN)


@shares(told=0.5)
@given(st.data(), ROWS, ROWS)
@examples(60)
def test_the_bytes_are_those_of_the_values_that_the_stream_gave(data: st.DataObject, before: Any, after: Any) -> None:
    op = data.draw(st.sampled_from([Op.ADD, Op.MODIFY, Op.DELETE]))
    former = None if op is Op.ADD or (op is Op.MODIFY and data.draw(st.booleans())) else {"id": 5, **before}
    new = None if op is Op.DELETE else {"id": 5, **after}
    met(told=former != new)
    assert_a_dump_tells_the_same(image(op, former, new))


FEW = st.builds(
    lambda number, word: {"c0": number, "c4": word}, st.none() | st.integers(0, 1), st.sampled_from([None, "", "a"])
)


@given(
    st.lists(st.tuples(st.sampled_from([*Op]), st.sampled_from([1, 2]), st.none() | FEW, FEW), min_size=1, max_size=4)
)
@examples(20)
def test_a_conversion_and_a_publisher_tell_the_same_of_neighbours(drawn: list[tuple[Op, int, Any, Any]]) -> None:
    images = []
    for at, (op, key, before, after) in enumerate(drawn, 1):
        former = {"id": key, **(before or after)} if op is Op.DELETE or (op is Op.MODIFY and before) else None
        new = {"id": key, **after} if op in (Op.ADD, Op.MODIFY) else None
        images.append(image(op, former, new, at=at))
    assert_a_dump_tells_the_same(*images)


def test_a_dump_tells_the_same_of_an_update_that_says_little() -> None:
    row: dict[str, Any] = {"id": 5, **dict.fromkeys(NAMES), "c2": 1.5}
    assert_a_dump_tells_the_same(
        image(Op.MODIFY, row, {**row}),
        image(Op.MODIFY, None, {**row}, at=2),
    )


@given(st.data())
@examples(100)
def test_a_text_is_read_as_the_value_that_it_was(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([*TYPES]))
    value = data.draw(TYPES[kind])
    text = write_text(value)
    assert text is not None
    assert reading(Column(name="c", type=kind))(text) == value
    assert TextWriter().write([value, None]) == [text, None]


def test_a_row_that_a_trigger_would_write_is_the_same_one(tmp_path: Path) -> None:
    row = {"id": 5, **dict.fromkeys(NAMES), "c0": 7, "c1": Decimal("1.50")}
    catalog, rows = captured(tmp_path, image(Op.ADD, None, row), image(Op.MODIFY, row, {**row, "c0": 8}, at=2))
    texts = ["7", "1.50", *[None] * 6]
    assert [(one.kind, one.column, one.key, one.old, one.new) for one in rows] == [
        (5, None, "id=5", None, encode_image(1, texts)),
        (6, None, "id=5", encode_image(1, texts), encode_image(1, ["8", *texts[1:]])),
    ]
    of_trigger = [
        Event(position=one.position, kind=one.kind, table="usr", key=one.key, old=one.old, new=one.new, time=one.time)
        for one in rows
    ]
    ours, theirs = decided(catalog, rows)[0], decided(catalog, of_trigger)[0]
    assert [(one.op, one.row, one.edits, one.whole) for one in ours] == [
        (one.op, one.row, one.edits, one.whole) for one in theirs
    ]


def test_an_update_that_changes_nothing_says_nothing(tmp_path: Path) -> None:
    row = {"id": 5, **dict.fromkeys(NAMES), "c0": 7}
    changes, others = decided(*captured(tmp_path, image(Op.MODIFY, row, {**row})))
    assert (changes, others) == ([], {1: (Reason.NOTHING, "no value of the row has changed.")})


def test_definitions_between_rows_leave_each_row_its_own(tmp_path: Path) -> None:
    later = Catalog([Table(name="usr", columns=(*USR.columns[:2], Column(name="new", type="integer")))])
    row = {"id": 5, **dict.fromkeys(NAMES), "c0": 7}
    going = Capturing(Given([image(Op.ADD, None, row)]), tmp_path / "log.db")
    going.capture()
    going.die()
    again = Capturing(Given([]), tmp_path / "log.db")
    with again.log.writing(again.log.place()) as writing:
        piece = [image(Op.ADD, None, {"id": 6, "c0": 8, "new": 9}, at=2, table="usr")]
        writing.add(StreamPiece(images=piece, catalog=later, commit=2, begin=3))
    catalog = read_catalog(again.log.log)
    with again.engine.connect() as connection:
        rows = again.waiting(connection)
    again.close()
    first, second = decided(catalog, rows)[0]
    assert [edit.column for edit in first.edits] == NAMES
    assert second.edits == (Edit(column="c0", new="8"), Edit(column="new", new="9"))


@pytest.mark.parametrize(
    "damage, why",
    [
        ("SET new_value = substr(new_value, 1, 9)", "new_value is no image of a row."),
        ("SET new_value = '[\"1\"]'", "new_value has 0 values, and definition 1 has 8 columns."),
        ("SET new_value = replace(new_value, '[\"1\"', '[\"9\"')", "new_value is an image by definition 9 of usr"),
        ("SET new_value = '[1, 2]'", "new_value is no image of a row."),
        ("SET old_value = '[]'", "old_value is no image of definition 1, and new_value is one."),
        ("SET old_value = replace(old_value, '[\"1\"', '[\"9\"')", "old_value is no image of definition 1"),
    ],
)
def test_a_damaged_image_says_what_is_wrong_and_the_next_one_is_published(
    damage: str, why: str, tmp_path: Path
) -> None:
    row: dict[str, Any] = {"id": 5, **dict.fromkeys(NAMES), "c0": 7}
    catalog, rows = captured(
        tmp_path,
        image(Op.MODIFY, row, {**row, "c0": 8}),
        image(Op.MODIFY, {**row, "c0": 8}, {**row, "c0": 9}, at=2),
        damage=f"UPDATE event_log {damage} WHERE record_id = 1",
    )
    changes, others = decided(catalog, rows)
    reason, note = others[1]
    assert reason is Reason.INVALID
    assert note is not None
    assert note.startswith(why)
    assert [change.positions for change in changes] == [((2,),)]


def test_every_part_of_an_image_but_the_whole_is_none() -> None:
    whole = encode_image(7, ["a", None, 'b"\\', "ä😀\n"])
    assert decode_image(whole) == (7, ["a", None, 'b"\\', "ä😀\n"])
    for end in range(len(whole)):
        assert decode_image(whole[:end]) is None
    assert decode_image(f"{whole} ]") is None
    half = encode_image(7, ["\ud800", "\0"])
    assert decode_image(half) == (7, ["\ud800", "\0"])


def test_what_the_stream_could_not_read_says_why_and_shows_what_came(tmp_path: Path) -> None:
    catalog, rows = captured(
        tmp_path,
        image(Op.ADD, None, {"DATA": "0a0b"}, fault="c1: packed digit 101 at byte 4."),
        image(Op.DELETE, {"id": None}, at=2),
        image(Op.ADD, None, {"a": 1}, at=3, table="elsewhere"),
        image(Op.MODIFY, at=4),
        image(Op.ADD, None, {"id": 6, **dict.fromkeys(NAMES)}, at=5),
    )
    changes, others = decided(catalog, rows)
    assert "0a0b" in str(rows[0].new)
    assert {number: note for number, (_, note) in others.items()} == {
        1: "c1: packed digit 101 at byte 4.",
        2: "The key column id of usr is NULL, so the row cannot be named.",
        3: "elsewhere is not among the captured tables.",
        4: "The change of usr came without an image of its row.",
    }
    assert [change.row.key for change in changes] == ["id=6"]


def test_what_one_side_does_not_have_is_not_said_of_it(tmp_path: Path) -> None:
    catalog, rows = captured(tmp_path, image(Op.MODIFY, {"id": 5, "c0": 1}, {"id": 5, "c0": 2, "c4": "new"}))
    [change], _ = decided(catalog, rows)
    assert change.edits == (Edit(column="c0", old="1", new="2"), Edit(column="c4", old=ABSENT, new="new"))


def test_a_half_without_its_other_half_says_what_it_has(tmp_path: Path) -> None:
    catalog, rows = captured(
        tmp_path,
        image(Op.MODIFY, {"id": 5, "c0": 1}, None),
        image(Op.MODIFY, None, {"id": 5, "c0": 2}, at=2),
    )
    (first, second), _ = decided(catalog, rows)
    assert (first.op, first.edits) == (Op.MODIFY, (Edit(column="c0", old="1", new=ABSENT),))
    # Nobody noted what stood there: all former values go.
    assert (second.op, second.edits) == (Op.MODIFY, (Edit(column="c0", new="2", reset=True),))


def test_a_table_that_was_emptied_and_rows_without_a_key(tmp_path: Path) -> None:
    catalog, rows = captured(
        tmp_path,
        image(Op.ADD, None, {"a": "x"}, table="bare"),
        image(Op.TRUNCATE, at=2, table="bare"),
        image(Op.TRUNCATE, at=3),
        image(Op.DELETE, {"a": "y"}, at=4, table="bare"),
    )
    changes, others = decided(catalog, rows)
    assert others == {}
    assert [(change.op, change.row.table, change.row.key, len(change.edits)) for change in changes] == [
        (Op.ADD, "bare", "", 1),
        (Op.TRUNCATE, "bare", "", 0),
        (Op.TRUNCATE, "usr", "", 0),
        (Op.DELETE, "bare", "", 1),
    ]


@pytest.mark.parametrize("kind", [1, 2, 3, 5, 6, 7, 8])
def test_only_a_delete_or_an_image_speaks_of_a_whole_table(kind: int) -> None:
    row = Event(position=(1,), kind=kind, table="usr", key="*", column="c0", new="1", time="2026-01-01")
    [outcome] = Round(catalog=KNOWN).decide([row]).outcomes
    assert (outcome.status, outcome.reason) == (Status.ERROR, Reason.INVALID)


def test_rows_keep_what_the_stream_knew_of_them(tmp_path: Path) -> None:
    catalog, rows = captured(
        tmp_path,
        image(Op.ADD, None, {"id": 1, **dict.fromkeys(NAMES)}),
        image(Op.ADD, None, {"id": 2, **dict.fromkeys(NAMES)}, at=2, stream=None, transaction=None),
    )
    first, second = open_images(rows, catalog)
    assert (first.stream, first.transaction) == (
        "11:0x1",
        Transaction(id=77, time=dt.datetime(2026, 1, 2, 3, 4, 6), end=5, row=1),
    )
    assert (second.stream, second.transaction) == ("1.2.0", None)
