"""Who is behind a change: which changes are left out by it, and where documents and rows say it."""

from __future__ import annotations

import pytest

from eventlog.core.model import Change, Edit, Event, Op, Reason, RowId, Who
from eventlog.core.rules import Options, decide
from eventlog.core.schema import Catalog, Column, Table
from eventlog.qlik.change_tables.rows import header_columns
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.change_tables.tables import ChangeTables
from eventlog.xds import encode

CATALOG = Catalog(
    [Table(name="t", columns=(Column(name="k", type="integer", key=1), Column(name="n", type="varchar(9)")))]
)
SYNC, ANA = Who(user="app", context="sync-7"), Who(user="app", context="ana <ana@example.org>")


def change(op: Op, who: Who | None) -> Change:
    edits = () if op is Op.DELETE else (Edit(column="n", old="1" if op is Op.MODIFY else None, new="2"),)
    return Change(row=RowId(None, "t", "k=1"), op=op, edits=edits, positions=((1,),), who=who, whole=True)


def test_changes_of_a_named_context_are_left_out_and_the_reason_says_whose_they_are() -> None:
    events = [
        Event(
            position=(number,),
            kind=2,
            table="t",
            key=f"k={number}",
            column="n",
            new="1",
            time="2026-01-02T03:04:05",
            who=who,
        )
        for number, who in enumerate((SYNC, ANA, None), 1)
    ]
    outcomes = decide(events, {}, options=Options(contexts=("sync-*",))).outcomes.others
    assert outcomes[(1,)].reason is Reason.LOOPBACK
    assert "sync-7" in (outcomes[(1,)].note or "")
    assert Reason.LOOPBACK not in {outcome.reason for position, outcome in outcomes.items() if position != (1,)}


@pytest.mark.parametrize("op", [Op.ADD, Op.MODIFY, Op.DELETE])
def test_a_document_says_who_only_where_it_is_asked_to(op: Op) -> None:
    def text(who: Who | None, *, told: bool) -> str:
        [document] = encode([change(op, who)], CATALOG, who=told)
        return document.body.decode()

    said = '<operation-data><who user="app" context="ana &lt;ana@example.org&gt;"/></operation-data>'
    assert said in text(ANA, told=True)
    assert "operation-data" not in text(ANA, told=False)
    assert "operation-data" not in text(None, told=True)


def test_rows_of_change_tables_have_two_header_columns_for_it() -> None:
    settings = ChangeTableSettings()
    names = [name for name, _ in header_columns(settings, who=True)]
    assert len(names) == len(header_columns(settings)) + 2
    table = ChangeTables(settings, CATALOG, who=True).of(change(Op.MODIFY, ANA))
    assert table is not None
    for who, told in ((ANA, ("app", ANA.context)), (None, (None, None))):
        rows = table.rows(change(Op.MODIFY, who))
        assert rows
        # change_seq is written last, when a row has its place.
        assert {row[len(names) - 3 : len(names) - 1] for row in rows} == {told}
