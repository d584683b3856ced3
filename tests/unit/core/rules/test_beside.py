"""What policies need beside a change: read once, given to the changes that asked, and waited for where it must be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eventlog.convert.long_object import decide_pieces
from eventlog.core.model import Change, Event, Kind, ReadBack, Reason, RowId, Status, Unreadable
from eventlog.core.rules import Round
from tests.support.memory import MemoryRows
from tests.support.strategies import CATALOG, PHONE

ROW = RowId(None, "usr", "idu=1")


def event(position: int, key: str = "idu=1", column: str = "fname") -> Event:
    return Event(
        position=(position,),
        kind=Kind.UPDATE_FIELD,
        table="usr",
        key=key,
        column=column,
        old="a",
        new="b",
        time="2026-01-01",
    )


def needs(change: Change) -> frozenset[str]:
    return frozenset({"lname"}) - {edit.column for edit in change.edits}


class Answers:
    """Says the same of every row."""

    def __init__(self, found: ReadBack) -> None:
        self.found = found

    def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
        return dict.fromkeys(wanted, self.found)


def beside(changes: Iterable[Change]) -> list[object]:
    return [change.beside for change in changes]


def test_rows_are_read_once_for_all_and_only_for_who_asks() -> None:
    reader = MemoryRows({ROW: {"fname": "x", "lname": "L"}})
    groups = [[event(1), event(2, "idu=2")], [event(3), event(4, "idu=3", "lname")]]
    first, second = Round(catalog=CATALOG, reader=reader, needs=needs).decide_groups(groups)
    assert reader.asked == [{ROW: {"lname"}, RowId(None, "usr", "idu=2"): {"lname"}}]
    assert beside(first.changes) == [{"lname": "L"}, {}]
    assert beside(second.changes) == [{"lname": "L"}, None]
    decision = Round(catalog=CATALOG, reader=reader, needs=needs, by_object=True).decide([event(1)])
    assert beside(decision.changes) == [{"lname": "L"}]


def test_where_a_row_cannot_be_read_yet_all_changes_of_its_object_wait() -> None:
    reader = Answers(Unreadable(note="no room.", reason=Reason.NO_ROOM))
    events = [event(1), event(2, column="lname"), event(3, "idu=2", "lname")]
    decision = Round(catalog=CATALOG, reader=reader, needs=needs).decide([events[0], *events[2:]])
    assert [change.row.key for change in decision.changes] == ["idu=2"]
    assert [(one.status, one.reason, one.note) for one in decision.outcomes] == [
        (Status.NEW, Reason.NO_ROOM, "no room."),
        (Status.SUCCESS, Reason.PUBLISHED, None),
    ]


def test_of_a_row_that_cannot_be_read_whole_what_can_be_is_known() -> None:
    for row, known in (({}, None), ({"lname": "L"}, {"lname": "L"})):
        reader = Answers(Unreadable(note="too long.", row=row))
        assert beside(Round(catalog=CATALOG, reader=reader, needs=needs).decide([event(1)]).changes) == [known]


def test_an_object_in_pieces_is_read_again_where_more_is_needed_with_all_that_was() -> None:
    reader = MemoryRows({ROW: {"fname": "x", "lname": "L", PHONE: ("1",)}})
    asked = iter(({"lname"}, {PHONE}, {"lname"}, {"lname", PHONE}))
    told: list[Change] = []
    round_ = Round(catalog=CATALOG, reader=reader, needs=lambda _: frozenset(next(asked)))
    list(decide_pieces(round_, lambda: [[event(number)] for number in range(1, 5)], told.append))
    assert beside(told) == [{"lname": "L"}, {PHONE: ("1",)}, {"lname": "L"}, {"lname": "L", PHONE: ("1",)}]
    assert reader.asked == [{ROW: {"lname"}}, {ROW: {"lname", PHONE}}]
