"""A mirror has every row of its source, whatever its database takes for equal: cases, accents, blanks at the end."""

from __future__ import annotations

import pytest
from sqlalchemy import URL, Engine, create_engine, text

from eventlog.admin.check.outputs import output_points
from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import DataError
from eventlog.core.model import Change, Edit, Op, RowId, Transaction
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sinks.database.mirror import Mirrors
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from tests.integration.publishing import url_of
from tests.support.changerows import AT, documents
from tests.support.servers import mysqls
from tests.support.servers_mysql import mysql_database
from tests.support.sinks import opened

KEYS = ["a", "A", "a ", "á", "ä", "AE", "æ", "b"]
COLLATIONS = ["utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "latin1_swedish_ci"]


def words(kind: str) -> Catalog:
    key = Column(name="idw", type=kind, key=1)
    return Catalog([Table(name="word", columns=(key, Column(name="said", type="varchar(10)")))])


def told(number: int, op: Op, key: str) -> Change:
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


def stored(engine: Engine, *changes: Change, kind: str = "varchar(20)") -> None:
    sink = opened(DatabaseSink(DatabaseSettings(url=""), engine))
    assert list(sink.commit("", documents(*changes, after=sink.last(), catalog=words(kind)))) == []


def mirrored(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.scalars(text("SELECT idw FROM word__mirror")))


def assert_that_every_key_comes_and_goes(engine: Engine, kind: str) -> None:
    stored(engine, *[told(number, Op.ADD, key) for number, key in enumerate(KEYS, 1)], kind=kind)
    Mirrors(engine).apply()
    assert mirrored(engine) == set(KEYS)
    stored(engine, *[told(number, Op.DELETE, key) for number, key in enumerate(KEYS[::2], 11)], kind=kind)
    stored(engine, told(21, Op.MODIFY, "A"), kind=kind)
    Mirrors(engine, piece=2).apply()
    assert mirrored(engine) == set(KEYS[1::2])


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
    stored(postgresql, told(1, Op.ADD, "a"), told(2, Op.ADD, "A"), kind="character(20)")
    Mirrors(postgresql).apply()
    assert {key.rstrip() for key in mirrored(postgresql)} == {"a", "A"}


def assert_that_the_loose_mirror_is_refused(engine: Engine, made: str) -> None:
    """Refused where it is empty as well as where an eventlog before this one has begun to keep it."""
    stored(engine, told(1, Op.ADD, "a"), told(2, Op.ADD, "A"))
    with engine.begin() as connection:
        connection.execute(text(made))
    with pytest.raises(DataError, match="The mirror word__mirror may lose rows: its key column idw"):
        Mirrors(engine).apply()
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE word__mirror"))
    Mirrors(engine).apply(["word"])
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE word__mirror"))
        connection.execute(text(made))
    with pytest.raises(DataError, match="The mirror word__mirror may lose rows: its key column idw"):
        Mirrors(engine).apply()


def told_by_check(engine: Engine) -> list[str]:
    """What `check` warns of at the output that writes there."""
    output = DatabaseOutput(url=url_of(engine))
    config = Config(source=SourceConfig(url="sqlite://"), output=(output,))
    return [point.said for point in output_points(config) if point.level == "warning"]
