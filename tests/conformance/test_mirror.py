"""`eventlog apply`: a mirror becomes what the changes say, from any watermark, whatever its database takes for equal."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import URL, Engine, create_engine, event, text

from eventlog.check.outputs import output_points
from eventlog.cli.main import exit_code
from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import DataError, UsageError
from eventlog.core.model import Change, Edit, Op, RowId, Transaction
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sinks.database.mirror import Mirrors
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from tests.integration.publishing import url_of
from tests.support.changerows import AT, USR, documents, told
from tests.support.logged import run
from tests.support.servers import mysqls
from tests.support.servers_mysql import mysql_database
from tests.support.sinks import opened

CHANGES = [
    told(1, Op.ADD, 1, fname="Jack", pay="1.50"),
    told(2, Op.ADD, 2, fname="Ida"),
    told(3, Op.MODIFY, 1, fname=("Jack", "John")),
    told(4, Op.MODIFY, 7, fname=("x", "y")),
    told(5, Op.MODIFY, 1, pay=("1.50", None)),
    told(6, Op.DELETE, 2),
    told(7, Op.MODIFY, 3, idu=("7", "3")),
    told(8, Op.ADD, 1, "grp", name="staff"),
]
EXPECTED = [(1, "John", None), (3, "y", None)]


def stored(engine: Engine, *changes: Any, **chosen: Any) -> None:
    sink = opened(DatabaseSink(DatabaseSettings(url=""), engine))
    sink.commit("", documents(*changes, after=sink.last(), **chosen))


def mirrored(engine: Engine) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text("SELECT idu, fname, pay FROM usr__mirror ORDER BY idu"))]


@pytest.mark.parametrize("piece", [2, 3, 10_000])
@pytest.mark.parametrize("mask", ["binary", "hex"])
def test_the_mirror_is_what_the_changes_say(engine: Engine, piece: int, mask: str) -> None:
    stored(engine, *CHANGES, mask=mask)
    done = {one.mirror: one.rows for one in Mirrors(engine, piece=piece).apply()}
    assert mirrored(engine) == EXPECTED
    assert done == {"grp__mirror": 1, "usr__mirror": 11}


def test_each_time_only_what_is_new_is_applied(engine: Engine) -> None:
    for number, change in enumerate(CHANGES[:7], 1):
        stored(engine, change)
        [done] = Mirrors(engine).apply()
        assert done.rows in (1, 2)
        assert done.change_seq.endswith(f"{number:019d}")
    assert [one.rows for one in Mirrors(engine).apply()] == [0]
    assert mirrored(engine) == EXPECTED


def test_deletes_and_purged_change_tables_do_not_move_the_watermark_back(engine: Engine) -> None:
    stored(engine, *CHANGES[:2], told(3, Op.DELETE, 1), told(4, Op.DELETE, 2))
    Mirrors(engine).apply()
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM usr__ct"))
    assert [one.rows for one in Mirrors(engine).apply()] == [0]
    stored(engine, told(5, Op.ADD, 5, fname="Eve"))
    Mirrors(engine).apply()
    assert mirrored(engine) == [(5, "Eve", None)]


def test_a_table_with_rows_of_somebody_else_is_only_taken_when_asked(engine: Engine) -> None:
    stored(engine, CHANGES[2])
    with engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE usr__mirror (idu INTEGER PRIMARY KEY, fname VARCHAR(10), pay NUMERIC(10,2))")
        )
        connection.execute(text("INSERT INTO usr__mirror (idu, fname) VALUES (1, 'Jack'), (2, 'Ida')"))
    with pytest.raises(DataError, match="holds rows, and is no mirror yet"):
        Mirrors(engine).apply()
    Mirrors(engine, adopt=True).apply()
    assert [row[:2] for row in mirrored(engine)] == [(1, "John"), (2, "Ida")]
    assert [one.rows for one in Mirrors(engine).apply()] == [0]


def test_a_table_that_cannot_have_a_mirror_keeps_no_other_from_it(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(engine, *CHANGES)
    run(engine, "CREATE TABLE grp__mirror (idg INTEGER PRIMARY KEY)", "INSERT INTO grp__mirror VALUES (1)")
    assert exit_code(["apply", "--database", url_of(engine)]) == 65
    assert "grp is left out: grp__mirror is there already and holds rows" in capsys.readouterr().err
    assert mirrored(engine) == EXPECTED
    assert exit_code(["apply", "grp", "--database", url_of(engine)]) == 65
    assert "eventlog: grp__mirror is there already" in capsys.readouterr().err
    run(engine, "DROP TABLE grp__mirror")
    assert exit_code(["apply", "--database", url_of(engine)]) == 0


def test_without_masks_null_means_untouched(engine: Engine) -> None:
    stored(engine, *CHANGES[:3], headers=("change_seq", "change_oper"))
    Mirrors(engine).apply()
    assert [row[:2] for row in mirrored(engine)] == [(1, "John"), (2, "Ida")]


def test_a_column_that_is_gone_at_the_source_keeps_its_type_in_a_new_mirror(engine: Engine) -> None:
    stored(engine, told(1, Op.ADD, 1, photo="qqo="))
    fewer = Catalog([replace(USR, columns=USR.columns[:3])])
    stored(engine, told(2, Op.ADD, 2, fname="y"), catalog=fewer)
    Mirrors(engine).apply()
    with engine.connect() as connection:
        query = text("SELECT photo FROM usr__mirror ORDER BY idu")
        assert [cell and bytes(cell) for cell in connection.scalars(query)] == [b"\xaa\xaa", None]


def test_a_mirror_that_is_made_later_has_the_key_that_the_source_has_now(engine: Engine) -> None:
    stored(engine, told(1, Op.ADD, 1, fname="Ann"))
    columns = (replace(USR.columns[0], key=0), replace(USR.columns[1], key=1), *USR.columns[2:])
    another = Catalog([replace(USR, columns=columns)])
    changes = []
    for number, name in ((2, "Bob"), (3, "Eve")):
        change = told(number, Op.ADD, 1, idu="5")
        changes.append(replace(change, row=replace(change.row, key=f"fname={name}")))
    stored(engine, *changes, catalog=another)
    Mirrors(engine).apply()
    assert [row[:2] for row in mirrored(engine)] in (
        [(1, "Ann"), (5, "Bob"), (5, "Eve")],
        [(1, "Ann"), (5, "Eve"), (5, "Bob")],
    )


def test_change_tables_of_two_tables_with_one_name_share_no_mirror(engine: Engine) -> None:
    stored(engine, told(1, Op.ADD, 1, minutes=5), told(2, Op.ADD, 1, "grp"))
    theirs = told(3, Op.ADD, 2)
    theirs = replace(theirs, row=replace(theirs.row, schema="sales"))
    sink = opened(DatabaseSink(DatabaseSettings(url="", task="sales"), engine))
    sales = Catalog([replace(USR, schema="sales")])
    sink.commit("", documents(theirs, catalog=sales, suffix="__sales"))
    for asked in ([], ["usr__ct"], ["usr__sales"], ["usr"]):
        with pytest.raises(DataError, match="both change tables of a table usr"):
            Mirrors(engine).apply(asked)
    assert [one.mirror for one in Mirrors(engine).apply(["grp"])] == ["grp__mirror"]
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM eventlog_change_table WHERE target = 'usr__sales'"))
    assert [one.rows for one in Mirrors(engine).apply()] == [0, 1]


def test_an_update_of_a_key_without_the_row_before_it_is_refused(engine: Engine) -> None:
    """The row would stay under its former key."""
    stored(engine, *CHANGES[:3], before_image=False)
    Mirrors(engine).apply()
    stored(engine, told(7, Op.MODIFY, 3, idu=("1", "3")), before_image=False)
    with pytest.raises(DataError, match="does not say whose key the update") as refused:
        Mirrors(engine).apply()
    assert "before_image = true" in str(refused.value.hint)
    assert [row[:2] for row in mirrored(engine)] == [(1, "John"), (2, "Ida")]


def test_a_row_that_was_read_back_is_no_update_of_a_key(engine: Engine) -> None:
    """It has no row before it, whatever the setting is."""
    edits = [Edit(column=column.name, new=None, reset=True) for column in USR.columns[1:]]
    whole = replace(told(2, Op.MODIFY, 1), edits=tuple(edits))
    stored(engine, CHANGES[0], whole, before_image=False)
    Mirrors(engine).apply()
    assert mirrored(engine) == [(1, None, None)]


def test_what_cannot_be_applied_is_said(engine: Engine) -> None:
    with pytest.raises(DataError, match="no change tables here"):
        Mirrors(engine).apply()
    stored(engine, CHANGES[0], headers=("change_oper",))
    with pytest.raises(DataError, match="has no change_seq"):
        Mirrors(engine).apply()
    with pytest.raises(UsageError, match="no change table of nosuch"):
        Mirrors(engine).apply(["nosuch"])
    with pytest.raises(UsageError, match="must never be the source tables"):
        Mirrors(engine, suffix="")


def test_the_command_says_what_it_did(sqlite: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    stored(sqlite, *CHANGES)
    url = sqlite.url.render_as_string(hide_password=False)
    assert exit_code(["apply", "usr", "--database", url]) == 0
    assert "usr__ct -> usr__mirror: 11 rows" in capsys.readouterr().out
    assert exit_code(["apply", "--database", url, "--json"]) == 0
    assert [one["rows"] for one in json.loads(capsys.readouterr().out)] == [1, 0]
    assert exit_code(["apply", "--database", url, "--suffix", ""]) == 64


KEYS = ["a", "A", "a ", "á", "ä", "AE", "æ", "b"]
COLLATIONS = ["utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "latin1_swedish_ci"]


def words(kind: str) -> Catalog:
    key = Column(name="idw", type=kind, key=1)
    return Catalog([Table(name="word", columns=(key, Column(name="said", type="varchar(10)")))])


def told_word(number: int, op: Op, key: str) -> Change:
    edits = () if op is Op.DELETE else (Edit(column="said", new=f"{number}"),)
    place = RowId(None, "word", f'idw="{key}"')
    return Change(
        row=place,
        op=op,
        edits=edits,
        positions=((number,),),
        time=AT,
        transaction=Transaction(id=number, time=AT),
    )


def stored_words(engine: Engine, *changes: Change, kind: str = "varchar(20)") -> None:
    sink = opened(DatabaseSink(DatabaseSettings(url=""), engine))
    assert list(sink.commit("", documents(*changes, after=sink.last(), catalog=words(kind)))) == []


def mirrored_words(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.scalars(text("SELECT idw FROM word__mirror")))


def assert_that_every_key_comes_and_goes(engine: Engine, kind: str) -> None:
    stored_words(engine, *[told_word(number, Op.ADD, key) for number, key in enumerate(KEYS, 1)], kind=kind)
    Mirrors(engine).apply()
    assert mirrored_words(engine) == set(KEYS)
    stored_words(engine, *[told_word(number, Op.DELETE, key) for number, key in enumerate(KEYS[::2], 11)], kind=kind)
    stored_words(engine, told_word(21, Op.MODIFY, "A"), kind=kind)
    Mirrors(engine, piece=2).apply()
    assert mirrored_words(engine) == set(KEYS[1::2])


@pytest.mark.parametrize("kind", ["varchar(20)", "text"])
def test_keys_that_look_alike_are_rows_of_their_own(engine: Engine, kind: str) -> None:
    assert_that_every_key_comes_and_goes(engine, kind)


@pytest.mark.parametrize("collation", COLLATIONS)
@pytest.mark.parametrize("server", mysqls())
def test_whatever_the_database_takes_for_equal(request: pytest.FixtureRequest, server: str, collation: str) -> None:
    url: URL = request.getfixturevalue(f"{server}_server")
    with mysql_database(url, collation) as engine:
        assert_that_every_key_comes_and_goes(engine, "varchar(20)")


@pytest.mark.parametrize("collation", COLLATIONS)
@pytest.mark.parametrize("server", mysqls())
def test_a_mirror_with_the_databases_collation_is_refused(
    request: pytest.FixtureRequest, server: str, collation: str
) -> None:
    """What an eventlog before this one made there."""
    url: URL = request.getfixturevalue(f"{server}_server")
    with mysql_database(url, collation) as engine:
        assert_that_the_loose_mirror_is_refused(
            engine, "CREATE TABLE word__mirror (idw VARCHAR(20) PRIMARY KEY, said VARCHAR(10))"
        )
        assert told_by_check(engine) == [
            f"The mirror word__mirror may lose rows: its key column idw takes different texts for equal ({collation})."
        ]


@pytest.mark.parametrize(
    "kind, by",
    [("text COLLATE alike", "alike"), ("citext", "citext"), ("character(20)", "character"), ("loose", "citext")],
)
def test_a_mirror_of_postgresql_that_takes_texts_for_equal_is_refused(postgresql: Engine, kind: str, by: str) -> None:
    with postgresql.begin() as connection:
        connection.exec_driver_sql("CREATE EXTENSION citext; CREATE DOMAIN loose AS citext")
        connection.exec_driver_sql(
            "CREATE COLLATION alike (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
        )
    assert_that_the_loose_mirror_is_refused(
        postgresql, f"CREATE TABLE word__mirror (idw {kind} PRIMARY KEY, said text)"
    )
    assert [one[-(len(by) + 3) :] for one in told_by_check(postgresql)] == [f"({by})."]


def test_a_database_of_postgresql_in_another_language_loses_nothing(postgresql: Engine) -> None:
    """No database has a collation as its default that takes different texts for equal."""
    name = f"{postgresql.url.database}_icu"
    with postgresql.connect().execution_options(isolation_level="AUTOCOMMIT") as admin:
        if int(admin.exec_driver_sql("SHOW server_version_num").scalar_one()) < 150000:
            pytest.skip("databases have ICU's collations since PostgreSQL 15")
        made = f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu"
        admin.exec_driver_sql(f"{made} ICU_LOCALE 'und-u-ks-level1' LOCALE 'C'")
        engine = create_engine(postgresql.url.set(database=name))
        try:
            assert_that_every_key_comes_and_goes(engine, "varchar(20)")
        finally:
            engine.dispose()
            admin.exec_driver_sql(f"DROP DATABASE {name}")


@pytest.mark.parametrize("collation", ["NOCASE", "RTRIM"])
def test_a_mirror_of_sqlite_that_takes_texts_for_equal_is_refused(sqlite: Engine, collation: str) -> None:
    assert_that_the_loose_mirror_is_refused(
        sqlite, f"CREATE TABLE word__mirror (idw VARCHAR(20) COLLATE {collation} PRIMARY KEY, said VARCHAR(10))"
    )
    assert [one[-(len(collation) + 3) :] for one in told_by_check(sqlite)] == [f"({collation})."]


def test_blanks_at_the_end_need_not_count_where_the_source_has_none(postgresql: Engine) -> None:
    with postgresql.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE word__mirror (idw character(20) PRIMARY KEY, said text)")
    stored_words(postgresql, told_word(1, Op.ADD, "a"), told_word(2, Op.ADD, "A"), kind="character(20)")
    Mirrors(postgresql).apply()
    assert {key.rstrip() for key in mirrored_words(postgresql)} == {"a", "A"}


def assert_that_the_loose_mirror_is_refused(engine: Engine, made: str) -> None:
    """Refused where it is empty as well as where an eventlog before this one has begun to keep it."""
    stored_words(engine, told_word(1, Op.ADD, "a"), told_word(2, Op.ADD, "A"))
    with engine.begin() as connection:
        connection.execute(text(made))
    with pytest.raises(DataError, match="The mirror word__mirror may lose rows: its key column idw") as refused:
        Mirrors(engine).apply()
    assert "delete its row in eventlog_applied" in str(refused.value.hint)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE word__mirror"))
    Mirrors(engine).apply(["word"])
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE word__mirror"))
        connection.execute(text(made))
    with pytest.raises(DataError, match="The mirror word__mirror may lose rows: its key column idw"):
        Mirrors(engine).apply()


def told_by_check(engine: Engine) -> list[str]:
    """Return the warnings of `check` on the output to this database."""
    output = DatabaseOutput(url=url_of(engine))
    config = Config(source=SourceConfig(url="sqlite://"), output=(output,))
    return [point.said for point in output_points(config) if point.level == "warning"]


WIDER = (
    ("integer", "5", "bigint", "5000000000", 5_000_000_000),
    ("varchar(3)", "abc", "varchar(8)", "abcdefgh", "abcdefgh"),
    ("varchar(3)", "abc", "text", "x" * 5_000, "x" * 5_000),
    ("numeric(6,2)", "1.25", "numeric(8,4)", "1.2345", Decimal("1.2345")),
    ("numeric(6,4)", "1.2345", "numeric(8,2)", "123456.78", Decimal("123456.78")),
    ("real", "0.5", "double precision", "0.123456789012", 0.123456789012),
    ("integer", "5", "varchar(9)", "five", "five"),
    ("boolean", "true", "numeric(4,2)", "7.50", Decimal("7.5")),
)


@pytest.mark.parametrize("former, first, later, second, expected", WIDER, ids=range(len(WIDER)))
def test_a_mirror_becomes_as_wide_as_its_source(
    engine: Engine, former: str, first: str, later: str, second: str, expected: Any
) -> None:
    for number, kind, value in ((1, former, first), (2, later, second)):
        table = replace(USR, columns=(USR.columns[0], Column(name="fname", type=kind)))
        stored(engine, told(number, Op.ADD, number, fname=value), catalog=Catalog([table]))
        Mirrors(engine).apply()
    with engine.connect() as connection:
        cells = list(connection.scalars(text("SELECT fname FROM usr__mirror ORDER BY idu")))
    assert len(cells) == 2
    assert type(expected)(str(cells[1])) == expected  # SQLite has a number of no kind of its own


def test_a_key_becomes_as_wide_as_that_of_the_source(engine: Engine) -> None:
    for number, kind, key in ((1, "varchar(3)", "abc"), (2, "varchar(9)", "abc456789"), (3, "varchar(9)", "b")):
        table = replace(USR, columns=(Column(name="idu", type=kind, key=1), *USR.columns[1:2]))
        change = told(number, Op.ADD, 1, idu=key)
        named = replace(change, row=replace(change.row, key=f"idu={key}"))
        stored(engine, named, catalog=Catalog([table]))
        Mirrors(engine).apply()
    with engine.connect() as connection:
        assert sorted(connection.scalars(text("SELECT idu FROM usr__mirror"))) == ["abc", "abc456789", "b"]


@pytest.mark.parametrize("key", ["text", "varchar(30)", "numeric(9,0)"])
def test_a_mirror_that_is_wide_enough_is_left_as_it_is(engine: Engine, key: str) -> None:
    kinds = "text, varchar(20), char(3), boolean, smallint, bigint, numeric, numeric(9;2), uuid, real, double precision"
    kinds += ", date, time, timestamp, timestamp with time zone, blob, binary(9)"
    columns = []
    for index, kind in enumerate(kinds.split(", ")):
        columns.append(Column(name=f"c{index}", type=kind.replace(";", ",")))
    table = Table(name="grp", columns=(Column(name="idg", type=key, key=1), *columns))
    stored(engine, told(1, Op.ADD, 1, "grp", idg="7", c1="x"), catalog=Catalog([table]))
    Mirrors(engine).apply()
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *seen: statements.append(seen[2]))
    Mirrors(engine).apply()
    assert statements
    assert not [said for said in statements if "ALTER" in said.upper()]


@pytest.mark.filterwarnings("ignore:Did not recognize type")
def test_a_column_of_a_type_that_nobody_knows_is_left_alone(postgresql: Engine) -> None:
    stored(postgresql, told(1, Op.ADD, 1, fname="Ann"))
    Mirrors(postgresql).apply()
    run(postgresql, "ALTER TABLE usr__ct ADD place point")
    for number, name in ((2, "Bob"), (3, "Eve")):
        stored(postgresql, told(number, Op.ADD, number, fname=name))
        Mirrors(postgresql).apply()
    assert [row[1] for row in mirrored(postgresql)] == ["Ann", "Bob", "Eve"]
