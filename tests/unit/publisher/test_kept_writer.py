"""What a format makes of tables is made once, is made anew for other tables, and does not grow for ever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from eventlog.core.model import Change, Op, RowId
from eventlog.core.schema import Catalog
from eventlog.core.seams import Format, Writer
from eventlog.publisher.encode import KEPT_CHANGES, KeptWriter

CHANGE = Change(op=Op.MODIFY, row=RowId(schema=None, table="usr", key="idu=1"), positions=((1,),), edits=())


class Counting:
    """Counts the changes that each writer gets."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def writer(self, catalog: Catalog | None) -> Writer:
        number = len(self.counts)
        self.counts.append(0)

        def write(changes: Iterable[Change]) -> Iterator[Any]:
            for change in changes:
                self.counts[number] += 1
                yield change

        return write


def counts(*takes: tuple[Catalog | None, int]) -> list[int]:
    form = Counting()
    writer = KeptWriter(cast("Format", form))
    for catalog, count in takes:
        assert len(writer.write(catalog, [CHANGE] * count)) == count
    return form.counts


def test_takes_of_the_same_tables_share_one_writer() -> None:
    first, second = Catalog(), Catalog()
    assert counts((first, 1), (first, 2), (second, 1), (None, 1), (None, 1)) == [3, 1, 2]


def test_no_writer_is_kept_for_ever() -> None:
    tables = Catalog()
    assert counts(*[(tables, KEPT_CHANGES // 2)] * 5) == [KEPT_CHANGES, KEPT_CHANGES, KEPT_CHANGES // 2]
