"""Change tables in every database: rows, masks, refusals, repeats, tables that follow their sources, the SQL of the how-to."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, create_engine, text

from eventlog.core.errors import SinkError
from eventlog.core.model import Edit, Op, Outcome, Reason, Status
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sinks.database.mirror import Mirrors
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from tests.support.changerows import CATALOG, USR, documents, told
from tests.support.servers import mysqls
from tests.support.sinks import opened, tenure

ADD = told(1, Op.ADD, 1, fname="Jack", pay="1.50", photo="qqo=", since="2026-01-02 03:04:05.5")
UPDATE = told(2, Op.MODIFY, 1, fname=("Jack", "John"))
DELETE = told(3, Op.DELETE, 1)


@pytest.fixture(params=["postgresql", *mysqls()])
def strict_engine(request: pytest.FixtureRequest) -> Engine:
    """Return an engine on each database with strict types; SQLite has none."""
    found: Engine = request.getfixturevalue(request.param)
    return found


def sink(engine: Engine, **chosen: Any) -> DatabaseSink:
    return opened(DatabaseSink(DatabaseSettings(url="", **chosen), engine))


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def wider(*columns: Column) -> Catalog:
    return Catalog([replace(USR, columns=(*USR.columns, *columns))])


DATA = "SELECT header__change_oper, idu, fname FROM usr__ct ORDER BY header__change_seq, header__change_oper"


def test_rows_are_there_as_they_were_finished(engine: Engine) -> None:
    made = documents(ADD, UPDATE, DELETE)
    assert list(sink(engine).commit("", made)) == []
    assert rows(engine, DATA) == [("I", 1, "Jack"), ("B", 1, "Jack"), ("U", 1, "John"), ("D", 1, None)]
    [(mask, pay, photo, since, seq)] = rows(
        engine,
        "SELECT header__change_mask, pay, photo, since, header__change_seq FROM usr__ct WHERE header__change_oper = 'I'",
    )
    assert (bytes(mask), Decimal(pay), bytes(photo)) == (b"\x80\x0f", Decimal("1.50"), b"\xaa\xaa")
    assert str(since).startswith("2026-01-02 03:04:05.5")
    assert seq == made[0].blocks[0].rows[0][0]


def test_two_tasks_have_positions_of_their_own(engine: Engine) -> None:
    [made] = documents(ADD)
    sink(engine).commit("", [made])
    assert sink(engine, task="other").last() == ""


def refused(*outcomes: Outcome) -> list[tuple[Any, ...]]:
    assert all((one.status, one.reason) == (Status.ERROR, Reason.REFUSED) for one in outcomes)
    return [one.position for one in outcomes]


def test_a_row_that_the_target_refuses_is_set_aside_and_the_rest_goes_on(strict_engine: Engine) -> None:
    engine = strict_engine
    long = told(2, Op.MODIFY, 1, fname=("Jack", "a name that is too long"))
    made = documents(ADD, long, told(3, Op.ADD, 2, fname="Ida"), told(4, Op.ADD, 3, pay="123456789012"))
    outcomes = sink(engine).commit("a", made)
    assert refused(*outcomes) == [(2,), (4,)]
    assert "usr__ct: " in str(outcomes[0].note)
    assert rows(engine, DATA) == [("I", 1, "Jack"), ("I", 2, "Ida")]
    assert list(sink(engine).commit("a", made)) == list(outcomes), "told again after a crash"
    assert list(sink(engine).resolve("a").answers) == list(outcomes)
    assert rows(engine, DATA) == [("I", 1, "Jack"), ("I", 2, "Ida")]


LONG = "a name that is too long"


@pytest.mark.parametrize("mask", ["binary", "hex"])
def test_what_only_the_target_refuses_refuses_neither_its_correction_nor_a_delete(
    strict_engine: Engine, mask: str
) -> None:
    """The before image of a correction has the value that was refused, and so has a deletion."""
    engine = strict_engine
    first = told(1, Op.ADD, 1, fname="Jack", pay="1.50"), told(2, Op.ADD, 2, fname="Ida", pay="1.00")
    wrong = [told(number + 2, Op.MODIFY, number, fname=("Jack", LONG), pay=("1.50", "2.50")) for number in (1, 2)]
    # All of the row is known, as an image tells it; the pay came with the change that was refused.
    right = told(5, Op.MODIFY, 1, fname=(LONG, "Ann"), pay=("2.50", "2.50"))
    gone = told(6, Op.DELETE, 2, fname=(LONG, None), pay=("2.50", None))
    made = documents(*first, *wrong, right, gone, mask=mask)
    outcomes = sink(engine).commit("a", made)
    assert [(one.position, one.status) for one in outcomes] == [
        *(((3,), Status.ERROR), ((4,), Status.ERROR)),
        *(((5,), Status.WARNING), ((6,), Status.WARNING)),
    ]
    assert list(sink(engine).resolve("a").answers) == list(outcomes), "told again after a crash"
    Mirrors(engine).apply()
    assert rows(engine, "SELECT idu, fname, pay FROM usr__mirror") == [(1, "Ann", Decimal("2.50"))]


def test_by_option_it_stops_and_nothing_of_the_document_is_there(strict_engine: Engine) -> None:
    made = documents(ADD, told(2, Op.ADD, 2, fname="a name that is too long"))
    stopping = sink(strict_engine, on_refused="stop")
    with pytest.raises(SinkError, match="usr__ct does not take a row") as stopped:
        stopping.commit("", made)
    assert not stopped.value.may_pass
    assert stopping.last() == sink(strict_engine).last() == ""


@pytest.mark.parametrize("form, expected", [("binary", b"\x80\x10"), ("hex", "1080")])
def test_columns_that_come_are_added_and_masks_follow_the_target(engine: Engine, form: str, expected: Any) -> None:
    """It is the sixth column of the target, after seven headers."""
    first = documents(ADD, mask=form)
    sink(engine).commit("", first)
    nick = Column(name="nick", type="varchar(9)")
    middle = Catalog([replace(USR, columns=(*USR.columns[:1], nick, *USR.columns[1:]))])
    sink(engine).commit("", documents(told(2, Op.ADD, 2, nick="x"), catalog=middle, after=first[-1].id, mask=form))
    [(mask, value)] = rows(engine, "SELECT header__change_mask, nick FROM usr__ct WHERE idu = 2")
    assert (mask if form == "hex" else bytes(mask), value) == (expected, "x")
    kinds = rows(engine, "SELECT ddl_type, table_version, details FROM attrep_ddl_history ORDER BY table_version")
    assert [kind[:2] for kind in kinds] == [("CREATE_TABLE", 1), ("ALTER_TABLE", 2)]
    said = json.loads(kinds[1][2])["columns"]["nick"]
    assert (said["action"], said["type"], said["length"]) == ("ADD", "STRING", 9)


def test_columns_that_go_stay_in_the_target(engine: Engine) -> None:
    first = documents(ADD)
    sink(engine).commit("", first)
    fewer = Catalog([replace(USR, columns=(*USR.columns[:1], *USR.columns[2:]))])
    again = documents(told(2, Op.ADD, 2, pay="2"), catalog=fewer, after=first[-1].id, mask="binary")
    sink(engine).commit("", again)
    [(fname, mask)] = rows(engine, "SELECT fname, header__change_mask FROM usr__ct WHERE idu = 2")
    assert (fname, bytes(mask)) == (None, b"\x80\x02")
    [_, (details,)] = rows(engine, "SELECT details FROM attrep_ddl_history ORDER BY table_version")
    assert {name: column["action"] for name, column in json.loads(details)["columns"].items()} == {"fname": "DROP"}


def test_a_column_that_grows_is_altered(strict_engine: Engine) -> None:
    first = documents(ADD)
    sink(strict_engine).commit("", first)
    grown = Column(name="fname", type="varchar(40)")
    wide = Catalog([replace(USR, columns=(USR.columns[0], grown, *USR.columns[2:]))])
    long = told(2, Op.ADD, 2, fname="a name that is rather long")
    assert list(sink(strict_engine).commit("", documents(long, catalog=wide, after=first[-1].id))) == []
    assert rows(strict_engine, DATA)[-1][2] == "a name that is rather long"


def typed(name: str, kind: str) -> Catalog:
    """Make the catalog with another type for a column of `usr`."""
    types = {column.name: column.type for column in USR.columns} | {name: kind}
    columns = tuple([replace(column, type=types[column.name]) for column in USR.columns])
    return Catalog([replace(USR, columns=columns)])


@pytest.mark.parametrize(
    "column, former, wide, wider, late",
    [
        ("fname", "x", "varchar(40)", "a name that is rather long", "y"),
        ("pay", "1.50", "numeric(12,4)", "1.2345", "7.50"),
        ("pay", "12345678.25", "numeric(8,4)", "1.2345", "7.50"),
        ("pay", "1.50", "double precision", "1.2345", "7.50"),
        ("pay", "1.50", "text", "some", "7.50"),
        ("since", "2026-01-02 03:04:05.5", "date", "2026-01-03", "2026-01-04 03:04:05.5"),
    ],
)
def test_a_late_row_of_a_former_definition_narrows_nothing(
    engine: Engine, column: str, former: str, wide: str, wider: str, late: str
) -> None:
    """Such as one that waited, or was queued again."""
    found, own = sink(engine), typed(column, wide)
    told_so = ((former, CATALOG), (wider, own), (late, CATALOG), (wider, own))
    for number, (cell, catalog) in enumerate(told_so, 1):
        columns: dict[str, Any] = {column: cell}
        change = told(number, Op.ADD, number, **columns)
        assert list(found.commit("", documents(change, catalog=catalog, after=found.last()))) == []
    cells = [str(cell) for (cell,) in rows(engine, f"SELECT {column} FROM usr__ct ORDER BY idu")]
    for cell, expected in zip(cells, (former, wider, late, wider), strict=True):
        assert cell.startswith(expected) or Decimal(cell) == Decimal(expected)
    assert rows(engine, "SELECT version FROM eventlog_change_table") in ([(1,)], [(2,)])


@pytest.mark.parametrize(
    "wide, cell",
    [("smallint", "7"), ("numeric(4,2)", "7.50"), ("double precision", "7.5"), ("text", "x")],
)
def test_truth_values_are_numbers_where_a_column_becomes_another_one(engine: Engine, wide: str, cell: str) -> None:
    found = sink(engine)
    for number, (value, kind) in enumerate((("true", "boolean"), (cell, wide), ("true", "boolean")), 1):
        change = told(number, Op.ADD, number, pay=value)
        made = documents(change, catalog=typed("pay", kind), after=found.last())
        assert list(found.commit("", made)) == []
    cells = [str(pay) for (pay,) in rows(engine, "SELECT pay FROM usr__ct ORDER BY idu")]
    assert [cells[0].split(".")[0], cells[2].split(".")[0]] == ["1", "1"]
    assert cells[1] in {cell, cell.rstrip("0")}


@pytest.mark.parametrize(
    "column, kind, cell",
    [("pay", "numeric", "1e30"), ("since", "time", "03:04:05")],
)
def test_where_no_type_holds_both_the_rows_are_refused_and_none_is_changed(
    engine: Engine, column: str, kind: str, cell: str
) -> None:
    found, own = sink(engine), typed("pay", "double precision")
    change = told(1, Op.ADD, 1, pay="0.125", since="2026-01-02 03:04:05")
    found.commit("", documents(change, catalog=own))
    columns: dict[str, Any] = {column: cell}
    late = documents(told(2, Op.ADD, 2, **columns), catalog=typed(column, kind))
    [outcome] = found.commit("", late)
    assert "neither holds the values of the other" in str(outcome.note)
    assert "choose another suffix or schema" in str(outcome.note)
    [(pay, since)] = rows(engine, "SELECT pay, since FROM usr__ct")
    assert (float(pay), str(since)[:19]) == (0.125, "2026-01-02 03:04:05")


def test_a_column_that_comes_again_wider_is_altered_and_told(strict_engine: Engine) -> None:
    found = sink(strict_engine)
    fewer = Catalog([replace(USR, columns=(USR.columns[0], *USR.columns[2:]))])
    long = told(3, Op.ADD, 3, fname="a name that is rather long")
    for change, catalog in (
        (ADD, CATALOG),
        (told(2, Op.ADD, 2), fewer),
        (long, typed("fname", "varchar(40)")),
    ):
        assert list(found.commit("", documents(change, catalog=catalog, after=found.last()))) == []
    names = [row[2] for row in rows(strict_engine, DATA)]
    assert names == ["Jack", None, "a name that is rather long"]
    details = rows(strict_engine, "SELECT details FROM attrep_ddl_history ORDER BY table_version")
    said = [json.loads(text)["columns"] for (text,) in details]
    assert [columns["fname"]["action"] for columns in said] == ["ADD", "DROP", "ADD"]
    assert said[2]["fname"]["length"] == 40


def test_where_ddl_is_ignored_new_columns_are_left_out(engine: Engine) -> None:
    first = documents(ADD)
    sink(engine).commit("", first)
    news = documents(told(2, Op.ADD, 2, fname="x", nick="y"), catalog=wider(Column(name="nick")), after=first[-1].id)
    assert list(sink(engine, ddl="ignore").commit("", news)) == []
    [(mask,)] = rows(engine, "SELECT header__change_mask FROM usr__ct WHERE idu = 2")
    assert bytes(mask) == b"\x80\x01"


def test_a_table_that_is_no_change_table_is_left_alone(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE usr__ct (a INTEGER)"))
    outcomes = sink(engine).commit("", documents(ADD, told(2, Op.ADD, 1, "grp", name="staff")))
    assert refused(*outcomes) == [(1,)]
    assert "is no change table" in str(outcomes[0].note)
    assert rows(engine, "SELECT name FROM grp__ct") == [("staff",)]


def test_two_source_tables_do_not_share_a_change_table(engine: Engine) -> None:
    found = sink(engine)
    found.commit("", documents(ADD))
    other = Catalog([replace(USR, schema="hr")])
    change = replace(UPDATE, row=replace(UPDATE.row, schema="hr"))
    [outcome] = found.commit("", documents(change, catalog=other, after=found.last()))
    assert "is the change table of usr already" in str(outcome.note)


@pytest.mark.parametrize("name", ["x" * 300, "FNAME"])
def test_names_that_the_target_cannot_hold_are_refused(engine: Engine, name: str) -> None:
    if len(name) > 9 and engine.dialect.name == "sqlite":
        name *= 40  # it takes names of any length, and SQLAlchemy 9999 characters
    catalog = Catalog([*wider(Column(name=name)), CATALOG.tables[1]])
    outcomes = sink(engine).commit("", documents(ADD, told(2, Op.ADD, 1, "grp"), catalog=catalog))
    assert refused(*outcomes) == [(1,)]
    assert len(str(outcomes[0].note)) < 250


def test_partitions_become_visible_when_they_are_over(engine: Engine) -> None:
    made = documents(ADD, told(2, Op.ADD, 1, "grp"), told(3, Op.ADD, 2, minutes=60), partition_every=60, size=1)
    sink(engine).commit("", made)
    found = rows(engine, "SELECT partition_name, table_name, partition_start_time FROM attrep_cdc_partitions")
    assert sorted(row[:2] for row in found) == [("20240506T070000_20240506T080000", name) for name in ("grp", "usr")]
    assert {str(row[2])[:19] for row in found} == {"2024-05-06 07:00:00"}
    named = rows(engine, "SELECT DISTINCT header__partition_name FROM usr__ct ORDER BY 1")
    assert [name for (name,) in named] == ["20240506T070000_20240506T080000", "20240506T080000_20240506T090000"]


CELLS = {
    "n": ("numeric", "1.25"),
    "w": ("numeric(30,0)", "123456789012345678901234567890"),
    "f": ("double precision", "0.5"),
    "b": ("boolean", "t"),
    "d": ("date", "2026-01-02"),
    "t": ("time", "03:04:05"),
    "z": ("timestamptz", "2026-01-02 03:04:05+01"),
    "x": ("text", "tab\tline\nback\\slash 'quote' é"),
    "l": ("varchar(1000)", ""),
}
"""The type and the value of each column."""


def test_values_of_every_type_come_in_and_out(engine: Engine) -> None:
    change = replace(told(1, Op.ADD, 7), row=replace(ADD.row, table="every", key="k=7"))
    change = replace(change, edits=tuple([Edit(column=name, new=cell) for name, (_, cell) in CELLS.items()]))
    columns = [Column(name=name, type=kind) for name, (kind, _) in CELLS.items()]
    every = Table(name="every", columns=(Column(name="k", type="bigint", key=1), *columns))
    assert list(sink(engine).commit("", documents(change, catalog=Catalog([every])))) == []
    [found] = rows(engine, "SELECT n, w, f, b, d, x, l, z FROM every__ct")
    assert (Decimal(found[0]), Decimal(found[1])) == (Decimal("1.25"), Decimal(CELLS["w"][1]))
    assert (found[2], bool(found[3])) == (0.5, True)
    assert (str(found[4]), found[5], found[6]) == ("2026-01-02", CELLS["x"][1], "")
    at = found[7] if isinstance(found[7], dt.datetime) else dt.datetime.fromisoformat(str(found[7]))
    assert (at if at.tzinfo is None else at.astimezone(dt.UTC).replace(tzinfo=None)) == dt.datetime(2026, 1, 2, 2, 4, 5)


def test_who_takes_over_does_not_stumble_over_connections_that_the_server_has_ended(postgresql: Engine) -> None:
    """A server that was started anew has ended them all, those of a publisher that stood by too."""
    ours = sink(create_engine(postgresql.url))
    ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    found = rows(postgresql, f"{ended} WHERE datname = current_database() AND pid <> pg_backend_pid()")
    assert found[0][0] > 0
    opened(ours, tenure(2)).commit("a", documents(ADD))
    assert len(rows(postgresql, DATA)) == 1
    ours.close()


def test_change_tables_of_another_log_are_left_alone(engine: Engine) -> None:
    ours = opened(DatabaseSink(DatabaseSettings(url="", task="ours"), engine), tenure(1, "ours"))
    ours.commit("a", documents(ADD))
    theirs = opened(DatabaseSink(DatabaseSettings(url="", task="theirs"), engine), tenure(1, "theirs"))
    [outcome] = theirs.commit("a", documents(ADD))
    assert "of another event log already" in str(outcome.note)
    assert len(rows(engine, DATA)) == 1


def test_change_tables_of_another_task_are_left_alone(engine: Engine) -> None:
    """One that is behind would have change_seq run backwards, and `apply` passes such rows over."""
    ahead = sink(engine, task="ahead")
    ahead.commit("a", documents(told(2, Op.ADD, 2, minutes=5)))
    behind = sink(engine, task="behind")
    [outcome] = behind.commit("a", documents(ADD))
    assert "of the task ahead already" in str(outcome.note)
    assert "write that into eventlog_change_table.task" in str(outcome.note)
    assert len(rows(engine, DATA)) == 1
    with engine.begin() as connection:
        connection.execute(text("UPDATE eventlog_change_table SET task = 'behind'"))
    assert list(behind.commit("b", documents(ADD))) == []
    assert len(rows(engine, DATA)) == 2


def test_a_task_that_is_ahead_closes_no_partition_of_another_one(engine: Engine) -> None:
    behind, ahead = sink(engine, task="behind"), sink(engine, task="ahead")
    behind.commit("a", documents(ADD, partition_every=60))
    ahead.commit("a", documents(told(2, Op.ADD, 1, "grp", minutes=60), partition_every=60))
    closed = "SELECT task_name, table_name, partition_name FROM attrep_cdc_partitions"
    assert rows(engine, closed) == []
    more = [told(3, Op.ADD, 2, minutes=10), told(4, Op.ADD, 3, minutes=70)]
    behind.commit("b", documents(*more, partition_every=60, after=behind.last()))
    assert rows(engine, closed) == [("behind", "usr", "20240506T070000_20240506T080000")]


def test_tables_whose_names_differ_in_case_do_not_share_a_change_table(sqlite: Engine) -> None:
    """Its database takes both names for one."""
    both = Catalog([USR, replace(USR, name="USR")], case_sensitive=True)
    other = told(2, Op.ADD, 2)
    other = replace(other, row=replace(other.row, table="USR"))
    [outcome] = sink(sqlite).commit("", documents(ADD, other, catalog=both))
    assert "USR__ct is the change table of usr already" in str(outcome.note)
    assert [row[1] for row in rows(sqlite, DATA)] == [1]


PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "change-tables.md"
QUERIES = dict(re.findall(r"^```sql\n-- ([^\n]+)\n(.+?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE))
AT = "2024050607080912"
FIRST, SECOND, THIRD, FOURTH = (f"{AT}{number:019d}" for number in range(1, 5))
EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "each update with the row before it": [
        (FIRST, "I", 1, None, "Jack"),
        (SECOND, "U", 1, "Jack", "John"),
        (THIRD, "I", 2, None, "Ida"),
        (FOURTH, "D", 2, None, None),
    ],
    "what is left of each object, if it was not deleted": [(1, "John", SECOND)],
    "from when to when each version of an object was true": [
        (1, "Jack", FIRST, SECOND, 0),
        (1, "John", SECOND, None, 0),
        (2, "Ida", THIRD, FOURTH, 0),
        (2, None, FOURTH, None, 1),
    ],
    "the next rows after a watermark": [
        (SECOND, "B", 1, "Jack"),
        (SECOND, "U", 1, "John"),
        (THIRD, "I", 2, "Ida"),
        (FOURTH, "D", 2, None),
    ],
    "the earliest row that is still there: above the watermark, rows may have been purged that nobody has read": [
        (FIRST,)
    ],
    "the changes of each transaction": [
        (f"{number:02d}{'0' * 30}", 1, seq) for number, seq in enumerate((FIRST, SECOND, THIRD, FOURTH), 1)
    ],
}


@pytest.fixture
def filled(engine: Engine) -> Engine:
    """Fill a change table with four changes."""
    changes = [
        told(1, Op.ADD, 1, fname="Jack"),
        told(2, Op.MODIFY, 1, fname=("Jack", "John")),
        told(3, Op.ADD, 2, fname="Ida"),
        told(4, Op.DELETE, 2),
    ]
    opened(DatabaseSink(DatabaseSettings(url=""), engine)).commit("", documents(*changes))
    return engine


def test_every_query_of_the_page_finds_what_it_says(filled: Engine) -> None:
    with filled.connect() as connection:
        found = {said: [tuple(row) for row in connection.execute(text(query))] for said, query in QUERIES.items()}
    assert found == EXPECTED
