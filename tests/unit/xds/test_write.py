"""Documents: envelope, batches, ids, what they cover, refusals, sizes, and the public convenience."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal

import pytest
from msgspec.structs import replace

import eventlog.xds
from eventlog.core.errors import ConfigError, ExpressionError
from eventlog.core.model import Cell, Change, Document, Edit, Op, Position, Refusal, RowId
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Written, encode
from eventlog.version import VERSION
from eventlog.xds.validate import validate
from eventlog.xds.write import XdsFormat, document_id
from tests.support.xds_events import read_events

T = Table(name="t", columns=(Column(name="k", key=1), Column(name="n", type="integer")))


Tables = Catalog | list[Table] | dict[str, Table]


def change(*positions: Position, new: str = "5", column: str = "n") -> Change:
    return Change(row=RowId(None, "t", "k=1"), op=Op.ADD, edits=(Edit(column=column, new=new),), positions=positions)


def encoded(*changes: Change, **settings: object) -> list[Document | Refusal]:
    return list(encode(XdsFormat(**settings), changes, Catalog([T])))  # type: ignore[arg-type] # settings of a test


def documents(*changes: Change, **settings: object) -> list[Document]:
    return [each for each in encoded(*changes, **settings) if isinstance(each, Document)]


def test_a_document_is_a_whole_nds() -> None:
    [document] = documents(change((7,)), instance='a"<b')
    assert document.body.decode() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<nds dtdversion="2.0" ndsversion="8.x">\n'
        "  <source>\n"
        f'    <product version="{VERSION}" instance="a&quot;&lt;b">eventlog</product>\n'
        "    <contact>eventlog</contact>\n"
        "  </source>\n"
        "  <input>\n"
        '    <add class-name="t" event-id="7">\n'
        "      <association>k=1,table=t</association>\n"
        '      <add-attr attr-name="n"><value type="int">5</value></add-attr>\n'
        "    </add>\n"
        "  </input>\n"
        "</nds>\n"
    )
    assert validate(document.body) == []


@pytest.mark.parametrize("batch_size, sizes", [(1, [1] * 5), (2, [2, 2, 1]), (5, [5]), (128, [5]), (100_000, [5])])
def test_a_document_holds_up_to_a_batch(batch_size: int, sizes: list[int]) -> None:
    made = documents(*(change((n,)) for n in range(5)), batch_size=batch_size)
    assert [len(read_events(document.body)) for document in made] == sizes
    assert [position for document in made for ((position,),) in document.covers.values()] == list(range(5))


def test_covers_names_the_events_behind_each_event_id() -> None:
    [document] = documents(change((3,), (5,)), change((4,)), batch_size=2)
    assert document.covers == {"3-5": ((3,), (5,)), "4": ((4,),)}


@pytest.mark.parametrize(
    "made",
    [
        lambda: str(b"Jack", "utf-8"),
        lambda: Decimal("1.50"),
        lambda: int("1000000000"),
        lambda: dt.datetime(2026, 1, 1),
        lambda: bytes([1, 2, 3]),
        lambda: tuple("12"),
    ],
)
def test_of_an_image_only_what_differs_is_said(made: Callable[[], Cell]) -> None:
    """Values before and after are read from different bytes, so equal ones are seldom the same object."""
    before, after = made(), made()
    assert before is not after
    same, changed = Edit(column="a", old=before, new=after), Edit(column="b", old=before, new=None)
    image = Change(row=RowId(None, "t", "k=1"), op=Op.MODIFY, edits=(same, changed), positions=((1,),), whole=True)
    images = [image, replace(image, edits=(same,), positions=((2,),))]
    [told] = XdsFormat().writer(None)(images)
    [expected] = XdsFormat().writer(None)([replace(image, edits=(changed,), whole=False)])
    assert told == expected


def test_ids_sort_like_positions() -> None:
    positions = [(9,), (10,), (99, 5), (99, 10), (100,), (10**18,)]
    ids = [document.id for document in documents(*map(change, positions))]
    assert ids == sorted(ids) == [document_id(position) for position in positions]
    assert ids[2] == "00000000000000000099.00000000000000000005"


def test_an_id_does_not_depend_on_the_rest_of_the_batch() -> None:
    alone = documents(change((1,), (4,)), change((6,)), batch_size=2)
    more = documents(change((1,), (4,)), change((6,)), change((7,)), batch_size=2)
    assert more[:1] == alone


def test_a_refused_change_is_told_and_the_rest_goes_on() -> None:
    made = encoded(change((1,)), change((2,), (3,), new="abc"), change((4,)), batch_size=2, on_value="refuse-object")
    refusal, document = made
    assert refusal == Refusal(
        positions=((2,), (3,)),
        note="'t' 'k=1': attribute 'n': 'abc' is not a whole number; correct the value, or the column's type in the schema.",
    )
    assert isinstance(document, Document)
    assert list(document.covers) == ["1", "4"]


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"time_syntax": 4}, "time_syntax is 4; choose 1, 2 or 3"),
        ({"instance": "a\x00"}, r"instance: character 2 is U\+0000"),
        ({"schema_name": "\ud800"}, r"schema_name: character 1 is U\+D800"),
    ],
)
def test_settings_that_cannot_be_written_with_are_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        encoded(**settings)


def test_a_value_of_10_mb_comes_back() -> None:
    text = "<é\r" * (3 << 20)
    [document] = documents(change((1,), new=text, column="clob"))
    [event] = read_events(document.body)
    assert event.attributes[0].steps[0].values[0].text == text
    assert validate(document.body) == []


@pytest.mark.parametrize("op", [Op.ADD, Op.MODIFY])
def test_a_change_of_20_000_edits_of_one_attribute(op: Op) -> None:
    """The worst order for a writer that searches what was listed for each removal, or joins text to text."""
    numbers = range(10_000)
    edits = [Edit(column="c.x", new=str(n)) for n in numbers]
    edits += [Edit(column="c.x", old=str(n)) for n in reversed(numbers)]
    text = XdsFormat().fragment(Change(row=RowId(None, "t", "k=1"), op=op, edits=tuple(edits), positions=((1,),)))
    assert text.count("<value") == (0 if op is Op.ADD else 20_000)


def test_the_convenience_takes_tables_in_any_form() -> None:
    forms: list[Tables] = [Catalog([T]), [T], {"t": T}]
    bodies = [[document.body for document in eventlog.xds.encode([change((1,))], form)] for form in forms]
    assert bodies == [[document.body for document in documents(change((1,)))]] * 3
    [untyped] = eventlog.xds.encode([change((1,), new="abc")], envelope=False, batch_size=9)
    assert b'<value type="string">abc' in untyped.body


def test_the_convenience_hands_over_refusals_or_stops() -> None:
    bad, good = change((1,), new="abc"), change((2,))
    with pytest.raises(ExpressionError, match="'abc' is not a whole number"):
        list(eventlog.xds.encode([bad, good], [T]))
    refusals: list[Refusal] = []
    [document] = eventlog.xds.encode([bad, good], [T], refused=refusals.append, on_value="refuse-object")
    assert list(document.covers) == ["2"]
    assert [refusal.positions for refusal in refusals] == [((1,),)]


def test_a_heartbeat_is_a_document_without_events() -> None:
    for envelope in (True, False):
        beat = XdsFormat(envelope=envelope).heartbeat()
        assert b'<status level="success" type="heartbeat"/>' in beat.body
        assert beat.covers == {}
    assert validate(XdsFormat().heartbeat().body) == []


@pytest.mark.parametrize(
    "number, after, wanted",
    [
        (7, "", f"{7:020d}"),
        (7, f"{6:020d}", f"{7:020d}"),
        (5, f"{7:020d}", f"{7:020d}_000000000001"),
        (7, f"{7:020d}", f"{7:020d}_000000000001"),
        (7, f"{7:020d}_000000000009", f"{7:020d}_000000000010"),
        (8, f"{7:020d}_000000000009", f"{8:020d}"),
        (5, "somebody's", f"{5:020d}"),
        (5, "0-heartbeat", f"{5:020d}"),
    ],
)
def test_ids_that_are_to_rise_go_on_from_the_last_one(number: int, after: str, wanted: str) -> None:
    written = [Written("e", ((number,),), "x")]
    [document] = XdsFormat(rising=True).bind(written, after)
    assert document.id == wanted
    [other] = XdsFormat().bind(written, after)
    assert other.id == f"{number:020d}"


def test_a_document_goes_to_one_place_and_is_no_longer_than_a_batch() -> None:
    places = ["a", "b", "b", "b", "a", "a", "b"]
    written = [Written(str(number), ((number,),), "x", place) for number, place in enumerate(places)]
    found = [(one.route, len(one.covers)) for one in XdsFormat(batch_size=2).bind(written)]
    assert found == [("a", 1), ("b", 2), ("b", 1), ("a", 2), ("b", 1)]
    [whole] = XdsFormat(batch_size=2).bind(written, whole=True)
    assert (whole.route, len(whole.covers)) == ("a", 7)
    assert list(XdsFormat().bind([], whole=True)) == []


def test_a_heartbeat_is_indented_like_every_element() -> None:
    beat = '<status level="success" type="heartbeat"/>\n'
    assert f"\n  <input>\n    {beat}  </input>\n</nds>\n" in XdsFormat().heartbeat().body.decode()
    assert XdsFormat(envelope=False).heartbeat().body.decode().endswith(f"\n<input>\n  {beat}</input>\n")
