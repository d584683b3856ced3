"""A value that a target cannot hold: the next value takes its place, and a row goes, whatever it held before."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, get_args

import pytest

from eventlog.core.limits import ColumnLimits
from eventlog.core.model import Change, Edit, Op, Refusal, RowId
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import OnValue
from eventlog.qlik.change_tables.folding import ChangeRow, Nets, fold
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.masks import bits_of
from eventlog.sinks.change_files.arrow import misfits
from eventlog.sinks.change_files.settings import PARQUET

TYPES = {"n": "numeric(10,2)", "i": "integer", "r": "real", "t": "varchar(9)"}
KEY = Column(name="id", type="integer", key=1)
TABLE = Table(
    schema="s", name="t", columns=(KEY, *[Column(name=name, type=kind) for name, kind in TYPES.items()]), images=True
)
GOOD: dict[str, str | None] = {"n": "1.50", "i": "1", "r": "0.5", "t": "a"}
BAD = [("n", "NaN"), ("n", "123456789.00"), ("n", "1.505"), ("i", "3000000000"), ("r", "1e39")]
Row = dict[str, str | None]


def change(number: int, before: Row | None, after: Row | None) -> Change:
    """A change of the row, as an image tells it."""
    op = Op.ADD if before is None else Op.DELETE if after is None else Op.MODIFY
    none: Row = dict.fromkeys(TYPES)
    edits = [Edit(column=name, old=(before or none)[name], new=(after or none)[name]) for name in TYPES]
    if op is Op.ADD:
        edits = [Edit(column=name, new=value) for name, value in (after or none).items()]
    return Change(row=RowId("s", "t", "id=1"), op=op, edits=tuple(edits), positions=((number,),))


def published(changes: list[Change], on_value: OnValue) -> tuple[dict[Any, Any], dict[int, bool]]:
    """What a mirror of the Parquet rows holds, and which changes were refused; True stands for a part of one."""
    form = ChangeTableFormat(settings=ChangeTableSettings(on_value=on_value), limits=PARQUET.limits)
    made = list(form.writer(Catalog([TABLE]))(changes))
    refused = {item.positions[0][0]: item.partial for item in made if isinstance(item, Refusal)}
    mirror: dict[Any, Any] = {}
    for document in form.bind([item for item in made if not isinstance(item, Refusal)]):
        for block in document.blocks:
            assert misfits(block.columns, block.rows) == {}, "the sink finds nothing that the format has not"
            for step in fold(_rows(block), ("id",)):
                assert isinstance(step, Nets)
                for key, net in step.rows.items():
                    if net.values is None:
                        mirror.pop(key, None)
                    else:
                        mirror[key] = net.values if net.whole else {**mirror.get(key, {}), **net.values}
    return mirror, refused


def _rows(block: Any) -> Iterator[ChangeRow]:
    names = [column.name for column in block.columns]
    for row in block.rows:
        cells = dict(zip(names, row, strict=True))
        values = {name: cells[name] for name in ("id", *TYPES)}
        bits = bits_of(cells["header__change_mask"])
        changed = frozenset(name for index, name in enumerate(names) if bits >> index & 1 and name in values)
        yield ChangeRow(oper=cells["header__change_oper"], values=values, changed=changed)


@pytest.mark.parametrize("on_value", get_args(OnValue))
@pytest.mark.parametrize("column, bad", BAD)
def test_a_refused_value_does_not_refuse_its_correction(on_value: OnValue, column: str, bad: str) -> None:
    wrong: Row = {**GOOD, column: bad, "t": "b"}
    right: Row = {**GOOD, "t": "b"}
    mirror, refused = published([change(1, None, GOOD), change(2, GOOD, wrong), change(3, wrong, right)], on_value)
    assert mirror == {(1,): {"id": 1, "n": Decimal("1.50"), "i": 1, "r": 0.5, "t": "b"}}
    assert refused == {2: on_value != "refuse-object", 3: True}
    assert published([change(1, None, GOOD), change(2, GOOD, wrong), change(3, wrong, None)], on_value)[0] == {}


def test_what_a_target_holds_is_no_fault() -> None:
    made = ChangeTableFormat(limits=ColumnLimits(exact_nan=True)).writer(Catalog([TABLE]))(
        [change(1, None, {**GOOD, "n": "NaN"})]
    )
    assert [isinstance(item, Refusal) for item in made] == [False]


def test_rows_column_by_column_are_held_as_one_by_one() -> None:
    changes = [change(number, None, {**GOOD, "n": "NaN" if number == 5 else "1.00"}) for number in range(1, 20)]
    assert published(changes, "refuse-object")[1] == {5: False}
