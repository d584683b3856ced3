"""Reflection on every database: keys, types, children, references, views, and names as people type them."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.core.errors import InstallError
from eventlog.core.schema import Child, Column, Table
from eventlog.sql.dialect import dialect_of
from eventlog.sql.reflect import reflect
from tests.support.logged import run
from tests.support.reflected import reflect_table

TABLES = (
    "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64), manager INTEGER REFERENCES usr (idu))",
    "CREATE TABLE grp (idg INTEGER NOT NULL PRIMARY KEY, title VARCHAR(64) NOT NULL)",
    "CREATE TABLE usr_phone (idu INTEGER NOT NULL REFERENCES usr (idu), phoneno VARCHAR(32))",
    "CREATE TABLE usr_fax (id INTEGER NOT NULL PRIMARY KEY, idu INTEGER REFERENCES usr (idu), faxno VARCHAR(32))",
    "CREATE TABLE usr_mbr_of (idu INTEGER REFERENCES usr (idu), idg INTEGER REFERENCES grp (idg))",
    "CREATE TABLE pair (a INTEGER NOT NULL, b VARCHAR(9) NOT NULL, c TIMESTAMP, PRIMARY KEY (b, a), UNIQUE (a, b))",
    "CREATE TABLE pair_tag (pa INTEGER, tag VARCHAR(9), pb VARCHAR(9), FOREIGN KEY (pa, pb) REFERENCES pair (a, b))",
    'CREATE TABLE "Order" ("select" INTEGER NOT NULL PRIMARY KEY, "Mixed Name" VARCHAR(9))',
    "CREATE TABLE keyless (a INTEGER)",
    "CREATE VIEW view_usr AS SELECT idu AS pk_idu, fname AS sv_fname FROM usr",
)


@pytest.fixture
def tables(engine: Engine) -> Engine:
    run(engine, *TABLES)
    return engine


def children(table: Table) -> list[tuple[str, tuple[str, ...]]]:
    return [(child.name, child.parent_key) for child in table.children]


def test_a_class_has_its_columns_key_references_and_children(tables: Engine) -> None:
    usr = reflect_table(tables, "usr")
    assert usr.schema == ("public" if dialect_of(tables).schemas else None)
    key, fname, manager = usr.columns
    assert (key.name, key.key, key.nullable) == ("idu", 1, False)
    assert (fname.type, fname.references) == ("VARCHAR(64)", None)
    # SQLite has no smaller numbers, whatever it is told.
    whole = "BIGINT" if dialect_of(tables).name == "sqlite" else "INTEGER"
    assert manager == Column(name="manager", type=whole, references="usr", referenced_column="idu")
    assert children(usr) == [("usr_mbr_of", ("idu",)), ("usr_phone", ("idu",))]
    assert list(usr.attributes) == ["fname", "manager", "usr_mbr_of.idg", "usr_phone.phoneno"]


def test_a_table_with_a_key_and_one_of_another_parent_are_children_when_they_are_named(tables: Engine) -> None:
    assert children(reflect_table(tables, "grp")) == []
    assert children(reflect_table(tables, "grp", children=["usr_mbr_of"])) == [("usr_mbr_of", ("idg",))]
    assert ("usr_fax", ("idu",)) in children(reflect_table(tables, "usr", children=["usr_fax"]))
    assert [table.name for table in reflect(tables, ["usr", "usr_phone"])] == ["usr"]
    assert reflect_table(tables, "usr_phone").key == ()


def test_compound_keys_keep_the_order_of_the_key_and_children_follow_it(tables: Engine) -> None:
    pair = reflect_table(tables, "pair")
    assert (pair.key, children(pair)) == (("b", "a"), [("pair_tag", ("pb", "pa"))])


def test_without_names_every_class_is_found_and_no_child(tables: Engine) -> None:
    found = {table.name: table for table in reflect(tables)}
    assert set(found) == {"usr", "grp", "usr_fax", "pair", "Order", "view_usr"}
    view = found["view_usr"]
    assert (view.view, view.key, list(view.attributes)) == (True, ("pk_idu",), ["fname"])
    order = reflect_table(tables, "order")
    assert (order.name, [column.name for column in order.columns]) == ("Order", ["select", "Mixed Name"])


def test_what_is_not_there_is_said(tables: Engine) -> None:
    with pytest.raises(InstallError, match="no table or view nowhere"):
        reflect(tables, ["nowhere"])
    with pytest.raises(InstallError, match="keyless has no foreign key to the primary key"):
        reflect(tables, ["usr"], children=["keyless"])


def test_a_table_of_another_schema_is_named_with_it(postgresql: Engine) -> None:
    run(postgresql, "CREATE SCHEMA shop", "CREATE TABLE shop.item (id INTEGER PRIMARY KEY)")
    with pytest.raises(InstallError, match=r"no table or view item in the database\. Did you mean shop\.item\?"):
        reflect(postgresql, ["item"])


def test_a_name_may_carry_its_schema(postgresql: Engine) -> None:
    run(
        postgresql,
        "CREATE SCHEMA shop",
        "CREATE TABLE shop.usr (id INTEGER PRIMARY KEY, big NUMERIC(9,2), raw BYTEA)",
        "CREATE TABLE shop.tag (id INTEGER REFERENCES shop.usr, word TEXT)",
    )
    (usr,) = reflect(postgresql, ["shop.usr"]).tables
    assert (usr.schema, [column.type for column in usr.columns]) == ("shop", ["INTEGER", "NUMERIC(9, 2)", "BYTEA"])
    columns = (
        Column(name="id", type="INTEGER", references="usr", referenced_column="id"),
        Column(name="word", type="TEXT"),
    )
    assert usr.children == (Child(name="tag", parent_key=("id",), columns=columns),)
    assert reflect_table(postgresql, "usr", "shop") == usr


def test_types_that_nobody_knows_and_domains_and_enums_are_read(postgresql: Engine) -> None:
    run(
        postgresql,
        "CREATE DOMAIN cents AS INTEGER CHECK (VALUE >= 0)",
        "CREATE TYPE mood AS ENUM ('good', 'bad')",
        "CREATE TABLE t (id BIGINT PRIMARY KEY, c cents, m mood, p point, r int4range, a int[])",
    )
    columns = reflect_table(postgresql, "t").columns
    assert columns[1].type.upper() == "INTEGER"
    assert {column.category.value for column in columns[2:]} == {"string"}


def test_declared_types_of_sqlite_are_kept_in_the_words_of_whoever_made_the_table(sqlite: Engine) -> None:
    run(sqlite, "CREATE TABLE t (id INTEGER PRIMARY KEY, photo LONGRAW, name VARCHAR2(64), plain)")
    assert [column.type for column in reflect_table(sqlite, "t").columns][1:3] == ["LONGRAW", "VARCHAR2(64)"]
