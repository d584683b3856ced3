"""Transactions held until they commit: interleaving, savepoints, numbers used again, spilling; and what goes wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import SourceError
from eventlog.sources.stream.spill import FileSpill, spill_to
from eventlog.sources.stream.transactions import Numbered, Transactions
from tests.support.shares import met, shares


class Shelf:
    """A spill in memory that counts what lies there."""

    lying = 0

    def __init__(self) -> None:
        self.chunks: list[list[Numbered[str]]] = []
        Shelf.lying += 1

    def write(self, items: Sequence[Numbered[str]]) -> int:
        self.chunks.append(list(items))
        return len(self.chunks) - 1

    def read(self, chunk: int) -> list[Numbered[str]]:
        return self.chunks[chunk]

    def close(self) -> None:
        Shelf.lying -= 1


def told(*, orphans: bool = True, lost: list[int] | None = None) -> tuple[Transactions[str], list[str]]:
    said: list[str] = []
    lose = (lost if lost is not None else []).append
    return Transactions[str](None, 100, report=said.append, lose=lose, orphans=orphans), said


def test_three_interleaved_transactions_come_in_the_order_of_their_commits() -> None:
    open_ones, said = told()
    for tx in (1, 2, 3):
        open_ones.begin(tx, tx)
    for seq, tx in enumerate([1, 2, 3, 3, 1, 2], start=4):
        open_ones.add(tx, seq, f"{tx}.{seq}")
    assert open_ones.open == 1
    assert list(open_ones.commit(2, 10)) == ["2.5", "2.9"]
    assert list(open_ones.commit(1, 11)) == ["1.4", "1.8"]
    assert (open_ones.open, len(open_ones), 3 in open_ones, 1 in open_ones) == (3, 1, True, False)
    open_ones.rollback(3)
    assert (len(open_ones), open_ones.held, said) == (0, 0, [])


def test_a_savepoint_takes_back_what_came_since() -> None:
    open_ones, said = told()
    open_ones.begin(7, 1)
    for seq in (2, 3, 4):
        open_ones.add(7, seq, str(seq))
    open_ones.discard(7, 3)
    open_ones.add(7, 5, "5")
    assert list(open_ones.commit(7, 6)) == ["2", "5"]
    assert (open_ones.held, said) == (0, [])


def test_what_does_not_fit_is_told_and_taken_as_well_as_it_can_be() -> None:
    lost: list[int] = []
    open_ones, said = told(lost=lost)
    open_ones.add(1, 5, "a")
    open_ones.begin(1, 6)
    assert lost == [1]
    open_ones.add(1, 7, "b")
    assert list(open_ones.commit(1, 8)) == ["b"]
    assert list(open_ones.commit(1, 9)) == []
    open_ones.rollback(1)
    open_ones.discard(1, 3)
    assert [text.split(" ")[2] for text in said] == ["does", "begins", "is", "is", "takes"]


def test_what_is_open_at_the_end_is_lost_where_a_wrong_number_may_be_why() -> None:
    lost: list[int] = []
    for work in (
        "begin 1, add 1",
        "begin 1, add 1, end 2",
        "begin 1, add 1, undo 2",
        "add 1, add 1",
        "end 2, begin 1, add 1",
    ):
        open_ones, said = told(lost=lost)
        for seq, (verb, tx) in enumerate((one.split(" ") for one in work.split(", ")), 1):
            match verb:
                case "begin":
                    open_ones.begin(int(tx), seq)
                case "add":
                    open_ones.add(int(tx), seq, "a")
                case "end":
                    assert list(open_ones.commit(int(tx), seq)) == []
                case _:
                    open_ones.rollback(int(tx))
        open_ones.end()
        assert said[-1] == "The stream ends with 1 open transaction: left out."
        lost.append(-1)
    assert lost == [-1, 1, -1, 1, -1, 2, -1, -1]


def test_items_of_an_unknown_transaction_are_left_out_if_that_is_wanted() -> None:
    open_ones, said = told(orphans=False)
    open_ones.add(1, 5, "a")
    assert (1 in open_ones, list(open_ones.commit(1, 9)), len(said)) == (False, [], 2)


def test_closing_forgets_everything() -> None:
    open_ones: Transactions[str] = Transactions(Shelf, 1)
    for tx in (1, 2):
        open_ones.begin(tx, tx)
        open_ones.add(tx, 5, "a", weight=2)
    assert Shelf.lying == 2
    open_ones.close()
    assert (Shelf.lying, len(open_ones), open_ones.held) == (0, 0, 0)


@shares(committed=0.3, spilled=0.3)
@given(st.integers(0, 2**32), st.integers(1, 30))
def test_spilling_changes_nothing(seed: int, limit: int) -> None:
    """A random history, once with a limit that it never reaches and once with one that it always does."""
    dice = random.Random(seed)
    roomy: Transactions[str] = Transactions(None, 10**9)
    tight: Transactions[str] = Transactions(Shelf, limit)
    committed = spilled = 0
    for seq in range(1, 80):
        tx = dice.randrange(3)
        act = dice.random()
        for one in (roomy, tight):
            if act < 0.1:
                one.begin(tx, seq)
            elif act < 0.2:
                one.discard(tx, max(seq - int(act * 100), 0))
            elif act < 0.25:
                one.rollback(tx)
            elif act >= 0.3:
                one.add(tx, seq, f"{tx}.{seq}", weight=1 + seq % 3)
        if 0.25 <= act < 0.3:
            kept = list(roomy.commit(tx, seq))
            committed += len(kept)
            assert list(tight.commit(tx, seq)) == kept
        assert tight.held <= limit
        spilled += Shelf.lying
    tight.close()
    met(committed=committed, spilled=spilled)
    assert Shelf.lying == 0


def test_large_transactions_lie_in_files_without_names(tmp_path: Path) -> None:
    open_ones = Transactions(spill_to(tuple[int, bytes], tmp_path), 50)
    open_ones.begin(1, 0)
    for seq in range(1, 1000):
        open_ones.add(1, seq, (2**63, bytes([seq % 256])))
    open_ones.discard(1, 900)
    assert list(open_ones.commit(1, 1001)) == [(2**63, bytes([seq % 256])) for seq in range(1, 900)]
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_is_a_sentence(tmp_path: Path) -> None:
    spill: FileSpill[bytes] = FileSpill(bytes, tmp_path)
    spill.write([(1, b"x")])
    spill._file.seek(0)
    spill._file.truncate()
    with pytest.raises(SourceError, match="cannot be read back"):
        spill.read(0)
    spill.close()
    full: FileSpill[bytes] = FileSpill(bytes)
    full.close()
    full._file = open("/dev/full", "w+b", buffering=0)  # type: ignore[assignment]  # noqa: SIM115, PTH123  # a disk that is full
    with pytest.raises(SourceError, match="no space on the disk"):
        full.write([(1, b"x")])
    full.close()
