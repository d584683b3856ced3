"""What is read quickly is what is read exactly, whatever the bytes; and rows held together are rows held one by one."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlog.core.errors import DataError
from eventlog.sources.gbase.compiled import compiled
from eventlog.sources.gbase.encode import row_record, table_record
from eventlog.sources.gbase.layout import Layout, layout_of
from eventlog.sources.gbase.quick import MOST_DAYS, Days
from eventlog.sources.gbase.records import Record, place_of
from eventlog.sources.gbase.rows import Reader, SlowReader
from eventlog.sources.gbase.values import DAY_ZERO, TextRules
from eventlog.sources.stream.transactions import Transactions
from tests.support.gbase_streams import T1, begin, commit, insert, read, row
from tests.support.shares import met, shares
from tests.support.strategies_gbase import decimals
from tests.unit.sources.stream.test_transactions import Shelf

PAIRS = st.sampled_from([0, 0, 0, 1, 10, 50, 99, 100, 255])
FIRST = st.sampled_from([0, 0x3B, 0x3D, 0x3E, 0x3F, 0x40, 0x7F, 0x80, 0xC0, 0xC1, 0xC2, 0xC6, 0xD0, 0xFF])


def told(reader: Reader, record: bytes) -> str:
    try:
        return repr(reader(record, 36))
    except DataError as error:
        return str(error)


@shares(read=0.05, refused=0.1)
@given(decimals, FIRST, st.lists(PAIRS, min_size=18, max_size=18))
@example("decimal(4,2)", 0x3E, [0] * 18)  # a negative number of no size, which no server writes
@example("decimal(5,1)", 0xC2, [1, 2, 35, *[0] * 15])  # half a pair more than the type has
def test_any_bytes_of_a_decimal_are_read_as_they_are_read_exactly(kind: str, first: int, pairs: list[int]) -> None:
    layout: Layout = layout_of(1, f"c1 {kind}")
    record = bytes(36) + bytes((first, *pairs))[: layout.fixed_bytes]
    quick, exact = compiled(layout, TextRules()), SlowReader(layout, TextRules(), "auto")
    found = told(exact, record)
    met(read=found.startswith("{"), refused=not found.startswith("{"))
    assert told(quick, record) == found


@pytest.mark.parametrize("first, number", [(0xC2, "1234.50"), (0x3D, "-8765.50")])
def test_the_sign_of_a_decimal_decides_how_its_pairs_are_read(first: int, number: str) -> None:
    layout = layout_of(1, "c1 decimal(8,2)")
    record = bytes(36) + bytes((first, 12, 34, 50, 0))
    assert compiled(layout, TextRules())(record, 36) == {"c1": Decimal(number)}


def test_days_are_remembered_and_forgotten_again() -> None:
    days = Days()
    first = days[0]
    assert (first, days[0] is first, days[-(2**31)]) == (dt.date(1899, 12, 31), True, None)
    found = [days[number] for number in range(MOST_DAYS + 5)]
    assert [day.toordinal() - DAY_ZERO for day in found if day] == list(range(MOST_DAYS + 5))
    assert len(days) <= MOST_DAYS
    with pytest.raises(ValueError, match="ordinal"):
        days[-1_000_000]


def test_no_name_of_a_column_is_part_of_what_is_compiled() -> None:
    name = '"""); raise SystemExit #'
    quoted = '"' + name.replace('"', '""') + '"'
    reader = compiled(layout_of(1, f"{quoted} integer"), TextRules())
    assert reader(bytes(36) + bytes((0, 0, 0, 5)), 36) == {name: 5}


@shares(committed=0.25)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), max_size=30), st.booleans())
def test_items_held_together_are_items_held_one_by_one(runs: list[tuple[int, int]], orphans: bool) -> None:
    """Runs of one transaction each; the first of a transaction may come before anything has opened it."""
    said: tuple[list[str], list[str]] = ([], [])
    one, together = (Transactions[str](None, 10**9, report=said[at].append, orphans=orphans) for at in range(2))
    seq = 0
    for place, (tx, count) in enumerate(runs):
        run = [(seq + at, f"{tx}.{seq + at}") for at in range(count)]
        seq += count
        for number, item in run:
            one.add(tx, number, item, 3)
        together.extend(tx, run, 3 * count)
        if place == len(runs) // 2:
            one.begin(9, seq)
            together.begin(9, seq)
    assert (said[0], one.held, len(one)) == (said[1], together.held, len(together))
    kept = [list(one.commit(tx, seq)) for tx in range(1, 4)]
    met(committed=any(kept))
    assert [list(together.commit(tx, seq)) for tx in range(1, 4)] == kept


def test_rows_held_together_are_spilled_when_they_are_too_many() -> None:
    tight: Transactions[str] = Transactions(Shelf, 4)
    tight.begin(1, 1)
    for seq in range(2, 20, 3):
        tight.extend(1, [(seq + at, f"{seq + at}") for at in range(3)], 3)
        assert tight.held <= 4
    assert Shelf.lying == 1
    assert list(tight.commit(1, 20)) == [str(seq) for seq in range(2, 20)]
    assert Shelf.lying == 0


def test_a_row_of_another_table_comes_between_the_halves_of_an_update() -> None:
    other = layout_of(6, "c1 integer, c2 varchar(20,0)")
    strange = row_record(Record.INSERT, 5, 7, other, {"c1": 9, "c2": "b"})
    found = read(
        table_record(T1) + table_record(other) + begin(1),
        insert(2, 1) + row(Record.UPDBEF, 3, 1) + strange + row(Record.UPDAFT, (7 << 32) + 0x1AB, 2) + commit(9 << 32),
    )
    told_of = [(one.table, one.op.value, (one.before or {}).get("c1"), (one.after or {}).get("c1")) for one in found]
    assert told_of == [
        ("shop.t1", "add", None, 1),
        ("shop.t1", "modify", 1, None),
        ("table_6", "add", None, 9),
        ("shop.t1", "modify", None, 2),
    ]
    assert [one.stream for one in found] == [place_of(2), place_of(3), place_of(5), "7:0x1AB"]
    assert [one.last for one in found] == [False, False, False, True]
