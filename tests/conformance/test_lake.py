"""Tables of a lake: what is in them, for other engines too, how they follow their sources, and plans that touch several."""

from __future__ import annotations

import datetime as dt
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from itertools import count, product
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from deltalake import DeltaTable
from msgspec.structs import replace

from eventlog.core.errors import DataError, OccupiedError, SinkError
from eventlog.core.model import Op
from eventlog.core.schema import WHOLE_ROW, Catalog, Column, Table
from eventlog.qlik.masks import bits_of_bytes, bits_of_hex
from eventlog.sinks.change_files.arrow import arrow_columns
from tests.support.changerows import GRP, USR, documents, told
from tests.support.daily import steps_of_today
from tests.support.lakes import LAKES, DuckDB, Lake, Mode, close_catalogs, iceberg_in, once, put, random_step
from tests.support.sinks import KilledError, dying

ADD = told(1, Op.ADD, 1, fname="Jack", pay="1.50", photo="qqo=", since="2026-01-02 03:04:05.5")
Make = Callable[..., Lake]
CATALOGS = ("iceberg, postgresql", "iceberg, catalog_server")
"""Kinds of catalogs in which others have tables too; that of plain `iceberg` is an SQLite file."""

PLACES = (*sorted(LAKES), *CATALOGS)


@pytest.fixture(params=sorted(LAKES))
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return a function to make lakes of a kind in one place, or in a place apart."""
    kind, _, server = request.param.partition(", ")
    catalog: dict[str, Any] = {}
    namespace = "eventlog"
    if server == "postgresql":
        url = request.getfixturevalue(server).url.render_as_string(hide_password=False)
        catalog = {"type": "sql", "uri": url}
    elif server:
        catalog, namespace = request.getfixturevalue(server).catalog, request.getfixturevalue(server).namespace()

    def make(mode: Mode = "append", *, apart: str = "", **chosen: Any) -> Lake:
        folder = tmp_path / "lake" / apart
        if not catalog:
            return LAKES[kind](folder, mode, **chosen)
        return iceberg_in(catalog, folder, mode, namespace=namespace + apart, **chosen)

    return make


def wider(**types: str) -> Catalog:
    """Make the tables with other types, or with more columns."""
    known = [Column(name=c.name, type=types.pop(c.name, c.type), key=c.key) for c in USR.columns]
    more = [Column(name=name, type=kind) for name, kind in types.items()]
    return Catalog([Table(name="usr", columns=(*known, *more)), GRP])


def test_rows_are_as_files_of_parquet_have_them(lake: Make) -> None:
    found = lake()
    changes = (ADD, told(2, Op.MODIFY, 1, fname=("Jack", "Joe")), told(3, Op.DELETE, 1))
    put(found.sink(), "a", *changes)
    [block] = [block for one in documents(*changes) for block in one.blocks]
    expected = arrow_columns(block.columns, block.cells)
    table = found.read("usr__ct")
    assert table is not None
    assert table.schema.names == expected.schema.names
    order = [("header__change_seq", "ascending"), ("header__change_oper", "ascending")]
    assert table.sort_by(order).to_pylist() == expected.sort_by(order).to_pylist()
    first = found.rows("usr__ct")[0]
    assert (first["pay"], first["since"]) == (Decimal("1.50"), dt.datetime(2026, 1, 2, 3, 4, 5, 500_000))


@pytest.mark.in_turn
@pytest.mark.parametrize("lake, seed", [*product(sorted(LAKES), range(4)), *product(CATALOGS, [41])], indirect=["lake"])
def test_a_mirror_equals_its_source_after_random_changes(lake: Make, seed: int) -> None:
    chance, rows, numbers = random.Random(seed), dict[int, str | None](), count(1)
    found = lake("mirror")
    sink = found.sink()
    for plan in range(12):
        changes = [change for _ in range(chance.randrange(1, 30)) for change in random_step(chance, rows, numbers)]
        put(sink, str(plan), *changes)
        assert [(row["idu"], row["fname"]) for row in found.rows("usr")] == sorted(rows.items())
        if plan % 4 == 3:
            sink = found.sink(plan)


BOTH = [
    told(2, Op.ADD, 2, fname="Ada"),
    told(3, Op.ADD, 3, "grp", name="staff"),
    told(4, Op.ADD, 4, fname="Eve"),
]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "lake, mode", [*product(sorted(LAKES), ["append", "mirror"]), *product(CATALOGS, ["mirror"])], indirect=["lake"]
)
def test_who_dies_at_any_step_leaves_a_plan_of_two_tables_whole_or_nothing_of_it(lake: Make, mode: str) -> None:
    fates = list[tuple[bool, bool]]()
    names = ("usr", "grp") if mode == "mirror" else ("usr__ct", "grp__ct")
    for before in steps_of_today():
        place = lake(mode, apart=str(before))
        sink = place.sink()
        put(sink, "a", ADD)
        with dying(before) as died, suppress(KilledError):
            put(sink, "b", *BOTH)
        between = place.keys(names[0]) != [1] and place.keys(names[1]) == []
        heir = place.sink(2)
        there = heir.resolve("b").documents is None
        assert place.keys(names[0]) == ([1, 2, 4] if there else [1])
        assert place.keys(names[1]) == ([3] if there else [])
        heir.commit("b" if there else "c", documents(*BOTH, after=heir.last()))
        assert place.keys(names[0]) == [1, 2, 4]
        assert place.keys(names[1]) == [3]
        with pytest.raises(OccupiedError):
            put(sink, "d", told(9, Op.ADD, 9))
        fates.append((there, between))
        close_catalogs()  # a server takes no end of connections
        if not died.happened:
            break
    assert {there for there, _ in fates} == {True, False}
    assert any(between for _, between in fates), "somebody died between two tables"


@pytest.mark.parametrize("lake", PLACES, indirect=True)
def test_others_who_write_meanwhile_are_waited_for_and_told(lake: Make, caplog: pytest.LogCaptureFixture) -> None:
    """A second task writes into the same mirror, just before our commit, which adds a column."""
    ours, theirs = lake("mirror"), lake("mirror", task="other")
    sink, other = ours.sink(), theirs.sink()
    put(sink, "a", ADD)
    put(other, "a", told(1, Op.ADD, 20))
    act = once(type(sink._tables), "_put_rows", lambda: put(other, "b", told(2, Op.ADD, 21)))
    with caplog.at_level(logging.WARNING), act:
        told_now = (told(2, Op.MODIFY, 1, fname=("Jack", "Joe"), email=(None, "a@b")), told(3, Op.ADD, 3))
        put(sink, "b", *told_now, catalog=wider(email="text"))
    assert [(row["idu"], row["fname"], row["email"]) for row in ours.rows("usr")] == [
        (1, "Joe", "a@b"),
        (3, None, None),
        (20, None, None),
        (21, None, None),
    ]


@pytest.mark.in_turn
@pytest.mark.parametrize("lake", PLACES, indirect=True)
@pytest.mark.parametrize("mode", ["append", "mirror"])
def test_two_writers_at_once_lose_nothing(lake: Make, mode: str) -> None:
    failed = list[BaseException]()

    def write(task: str, begin: int) -> None:
        try:
            sink = lake(mode, task=task).sink()
            for number in range(begin, begin + 8):
                put(sink, str(number), told(number, Op.ADD, number, fname=task))
        except BaseException as error:  # noqa: BLE001  # told below
            failed.append(error)

    lake(mode).tables().schema("usr")  # which makes the tables of a catalog
    threads = [Thread(target=write, args=(task, begin)) for task, begin in (("one", 1), ("two", 101))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failed
    written = lake(mode).keys("usr" if mode == "mirror" else "usr__ct")
    assert sorted(written) == [*range(1, 9), *range(101, 109)]


@pytest.mark.parametrize("mode", ["append", "mirror"])
def test_a_new_column_is_added(lake: Make, mode: str) -> None:
    found = lake(mode)
    sink, name = found.sink(), "usr" if mode == "mirror" else "usr__ct"
    put(sink, "a", ADD)
    put(sink, "b", told(2, Op.ADD, 2, email="a@b"), catalog=wider(email="varchar(40)"))
    put(sink, "c", told(3, Op.ADD, 3, fname="old"))
    assert [(row["idu"], row["fname"], row["email"]) for row in found.rows(name)] == [
        (1, "Jack", None),
        (2, None, "a@b"),
        (3, "old", None),
    ]


@pytest.mark.parametrize("mode", ["append", "mirror"])
def test_a_value_for_which_the_table_has_no_room_is_refused_with_its_row(lake: Make, mode: str) -> None:
    """A table of numbers whose source has texts now takes those that are numbers."""
    found = lake(mode)
    sink, name = found.sink(), "usr" if mode == "mirror" else "usr__ct"
    put(sink, "a", ADD)
    texts = wider(pay="varchar(20)")
    outcomes = put(sink, "b", told(2, Op.ADD, 2, pay="2.25"), told(3, Op.ADD, 3, pay="much"), catalog=texts)
    [refusal] = outcomes
    assert refusal.position == (3,)
    assert "column pay is decimal128(10, 2) in the table there" in refusal.note
    assert [(row["idu"], row["pay"]) for row in found.rows(name)] == [(1, Decimal("1.50")), (2, Decimal("2.25"))]
    assert list(found.sink(2).resolve("b").answers) == list(outcomes)


def test_whoever_does_not_set_rows_aside_stops(lake: Make) -> None:
    found = lake(on_refused="stop")
    sink = found.sink()
    put(sink, "a", ADD)
    with pytest.raises(SinkError, match="does not take a row: column pay") as caught:
        put(sink, "b", told(3, Op.ADD, 3, pay="much"), catalog=wider(pay="varchar(20)"))
    assert not caught.value.may_pass
    assert found.keys("usr__ct") == [1]
    assert sink.resolve("b").last == "a"


KEYLESS = Catalog([Table(name="usr", columns=tuple(Column(name=c.name, type=c.type) for c in USR.columns)), GRP])


@pytest.mark.parametrize(
    "mode, catalog, said",
    [
        ("append", wider(FNAME="text"), "two of its columns are called 'fname'"),
        ("mirror", KEYLESS, "nobody knows its key"),
    ],
)
def test_tables_that_a_lake_cannot_have_are_refused(lake: Make, mode: str, catalog: Catalog, said: str) -> None:
    found = lake(mode)
    sink = found.sink()
    [refusal] = put(sink, "a", told(1, Op.ADD, 1), catalog=catalog)
    assert said in refusal.note
    assert sink.resolve("a").documents is None
    assert found.read("usr" if mode == "mirror" else "usr__ct") is None


def test_a_table_of_somebody_else_is_not_touched(lake: Make) -> None:
    mirror = lake("mirror")
    put(mirror.sink(), "a", ADD)
    former = mirror.rows("usr")
    [document] = documents(told(2, Op.ADD, 2))
    named_so = replace(document, blocks=(replace(document.blocks[0], target="usr"),))
    [refusal] = lake(task="other").sink().commit("a", [named_so])
    assert "it is there and is no change table: it has no column header__change_seq" in str(refusal.note)
    assert mirror.rows("usr") == former


def test_a_position_from_a_backup_is_told_and_loses_nothing(lake: Make) -> None:
    found = lake()
    sink = found.sink()
    put(sink, "a", ADD)
    place = Path(found.settings.path, "_eventlog", "eventlog")
    backup = {path.name: path.read_bytes() for path in place.glob("_p*")}
    put(sink, "b", told(2, Op.ADD, 2))
    for name, content in backup.items():
        (place / name).write_bytes(content)
    with pytest.raises(DataError, match=r"usr__ct has plan 2 already"):
        found.sink(2).resolve("b")
    assert found.keys("usr__ct") == [1, 2]


@pytest.mark.parametrize("damage", ["gone", "broken"])
def test_a_plan_whose_rows_are_gone_is_told(lake: Make, damage: str) -> None:
    found = lake()
    put(found.sink(), "a", ADD)
    rows = Path(found.settings.path, "_eventlog", "eventlog", "_plan.arrow")
    rows.unlink() if damage == "gone" else rows.write_bytes(b"no arrow")
    with pytest.raises(DataError, match=r"_plan\.arrow (is missing|cannot be read)"):
        found.sink(2).resolve("a")


# What the library has connected to a catalog that it cannot open, it never closes.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_place_that_cannot_be_used_is_told_with_its_outcome(lake: Make, tmp_path: Path) -> None:
    """Where a table is to stand is a file, or the catalog is none."""
    found = lake()
    sink = found.sink()
    in_the_way = tmp_path / "lake" / ("usr__ct" if found.settings.sink == "delta" else "catalog.db")
    in_the_way.write_text("a file that is nothing else")
    with pytest.raises(SinkError, match=r"usr__ct cannot be written: .*(does not exist|not a database)"):
        put(sink, "a", ADD)
    in_the_way.unlink()
    if sink.resolve("a").documents is not None:
        put(sink, "a", ADD)
    assert found.keys("usr__ct") == [1]


@pytest.mark.parametrize("mode", ["append", "mirror"])
def test_a_wider_type_is_followed_where_the_lake_can_do_that(lake: Make, mode: str) -> None:
    found = lake(mode)
    sink, name = found.sink(), "usr" if mode == "mirror" else "usr__ct"
    put(sink, "a", ADD)
    more = wider(pay="numeric(12,2)")
    large = told(3, Op.ADD, 3, pay="1234567890.12")
    outcomes = put(sink, "b", told(2, Op.ADD, 2, pay="2.25"), large, catalog=more)
    widens = found.settings.sink == "iceberg"
    assert [one.position for one in outcomes] == ([] if widens else [(3,)])
    there = [(row["idu"], row["pay"]) for row in found.rows(name)]
    rest = [(3, Decimal("1234567890.12"))] if widens else []
    assert there == [(1, Decimal("1.50")), (2, Decimal("2.25")), *rest]
    put(found.sink(2), "c", told(4, Op.ADD, 4, pay="3.00"))
    assert found.rows(name)[-1]["pay"] == Decimal("3.00")


def test_what_is_no_number_fits_a_fraction_of_the_other_width(lake: Make) -> None:
    found = lake()
    sink = found.sink()
    put(sink, "a", told(1, Op.ADD, 1, ratio="0.5"), catalog=wider(ratio="double precision"))
    changes = [told(2, Op.ADD, 2, ratio="NaN"), told(3, Op.ADD, 3, ratio="-Infinity")]
    assert list(put(sink, "b", *changes, catalog=wider(ratio="real"))) == []
    ratios = [str(row["ratio"]) for row in found.rows("usr__ct")]
    assert sorted(ratios) == ["-inf", "0.5", "nan"]


def test_small_files_are_joined_now_and_then(tmp_path: Path) -> None:
    found = LAKES["delta"](tmp_path, optimize_every=4)
    sink, files = found.sink(), list[int]()
    for number in range(1, 9):
        put(sink, str(number), told(number, Op.ADD, number))
        files.append(len(DeltaTable(str(tmp_path / "usr__ct")).file_uris()))
    assert files == [1, 2, 3, 1, 2, 3, 4, 1]
    assert found.keys("usr__ct") == list(range(1, 9))
    assert found.sink(2).resolve("8").documents is None


def test_a_table_that_cannot_be_joined_now_has_its_rows_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr("deltalake.table.TableOptimizer.compact", fails)
    found = LAKES["delta"](tmp_path, optimize_every=1)
    put(found.sink(), "a", ADD)
    assert found.keys("usr__ct") == [1]
    assert "is not put together this time: no room" in caplog.text


@pytest.mark.in_turn
@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("mode", ["append", "mirror"])
def test_a_type_that_changes_in_the_middle_of_a_plan_is_taken_as_the_first_one_allows(
    lake: Make, mode: str, is_there: bool
) -> None:
    found = lake(mode)
    sink, name = found.sink(), "usr" if mode == "mirror" else "usr__ct"
    if is_there:
        put(sink, "a", ADD)
    plan = documents(told(2, Op.ADD, 2, pay="2.25"), after=sink.last())
    later = [(wider(pay="numeric(12,2)"), "1234567890.12"), (wider(pay="varchar(20)", FNAME="text"), "4.00")]
    later += [(wider(pay="varchar(20)"), "much"), (wider(pay="varchar(20)"), "5.5")]
    for number, (catalog, pay) in enumerate(later, 3):
        plan += documents(told(number, Op.ADD, number, pay=pay), after=plan[-1].id, catalog=catalog)
    outcomes = sink.commit("b", plan)
    widens = found.settings.sink == "iceberg"
    assert sorted(one.position for one in outcomes) == [*([] if widens else [(3,)]), (4,), (5,)]
    there = {row["idu"]: row["pay"] for row in found.rows(name)}
    expected = {2: Decimal("2.25"), 6: Decimal("5.50")} | ({3: Decimal("1234567890.12")} if widens else {})
    assert there == expected | ({1: Decimal("1.50")} if is_there else {})


@pytest.mark.parametrize("kind", sorted(LAKES))
@pytest.mark.parametrize("mask", ["binary", "hex"])
def test_masks_count_the_columns_as_the_table_has_them(tmp_path: Path, kind: str, mask: str) -> None:
    """Also where the source has lost a column in the middle, which the table keeps."""
    lake = LAKES[kind](tmp_path)
    sink = lake.sink()
    put(sink, "a", told(1, Op.ADD, 1, fname="Jack", pay="1.50"), mask=mask)
    less = Catalog([Table(name="usr", columns=tuple(c for c in USR.columns if c.name != "fname"))])
    changed = told(2, Op.MODIFY, 1, pay=("1.50", "2.50"))
    put(sink, "b", changed, catalog=less, mask=mask, before_image=False)
    table = lake.read("usr__ct")
    assert table is not None
    written = lake.rows("usr__ct")[-1]["header__change_mask"]
    bits = bits_of_hex(written) if mask == "hex" else bits_of_bytes(written)
    names = [name for place, name in enumerate(table.schema.names) if bits >> place & 1]
    assert [name for name in names if not name.startswith("header__")] == ["pay"]


CHANGES = (
    told(1, Op.ADD, 1, fname="Jack", pay="1.50", photo="qqo=", since="2026-01-02 03:04:05.5"),
    told(2, Op.ADD, 2, fname="Zoë"),
    told(3, Op.ADD, 3),
)


@pytest.mark.parametrize("mode", ["append", "mirror"])
@pytest.mark.parametrize("kind", sorted(LAKES))
def test_duckdb_finds_the_same_rows(tmp_path: Path, kind: str, mode: Mode) -> None:
    """Also in the partitions of a table whose rows were changed, and after a mirror was emptied."""
    name, duckdb = "usr" if mode == "mirror" else "usr__ct", DuckDB()
    lake = LAKES[kind](tmp_path / "lake", mode, partition_by=("fname",))
    sink = lake.sink()
    plans = [
        CHANGES,
        (told(4, Op.MODIFY, 2, fname=("Zoë", "Ada")), told(5, Op.DELETE, 3)),
        (told(6, Op.TRUNCATE, 0), told(7, Op.ADD, 7, fname="Jack", pay="-0.01")),
    ]
    for number, changes in enumerate(plans):
        put(sink, str(number), *changes)
        theirs, ours = duckdb.read(lake, name), lake.read(name)
        assert ours is not None
        assert theirs.schema.names == ours.schema.names
        assert sorted(map(repr, theirs.to_pylist())) == sorted(map(repr, ours.to_pylist()))


def test_rows_that_are_their_own_key_are_appended_and_not_mirrored(lake: Make) -> None:
    columns = (Column(name=WHOLE_ROW, type="text", key=1), Column(name="idu", type="integer"))
    catalog = Catalog([Table(name="usr", columns=columns), GRP])
    cells: dict[str, Any] = {WHOLE_ROW: "1", "idu": "1"}
    twice = [told(number, Op.ADD, 1, **cells) for number in (1, 2)]
    outcomes = put(lake("mirror", task="other").sink(), "a", *twice, catalog=catalog)
    assert [one.position for one in outcomes] == [(1,), (2,)]
    assert "append them" in str(outcomes[0].note)
