"""Keys that triggers write are the keys that `tablekey` writes, whatever the values; and keys of all tables of SQLite at once."""

from __future__ import annotations

import base64

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, create_engine, inspect, text

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states
from eventlog.core.tablekey import SPECIAL, format_parts, parse
from eventlog.sql.dialect import dialect_of
from eventlog.sql.shapes import Schema
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.examples import examples
from tests.support.logged import left_by, logged, run

# The control characters stay out: NUL ends a text in some databases, and others refuse it.
any_text = st.text(
    st.sampled_from(SPECIAL + " aZ09äß漢😀\t\n%:/*-") | st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]),
    max_size=12,
)
one_database = examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture
def keyed(engine: Engine) -> Engine:
    install(engine)
    binary = "BYTEA" if dialect_of(engine).name == "postgresql" else "BLOB"
    run(
        engine,
        "CREATE TABLE words (w VARCHAR(60) NOT NULL, n INTEGER NOT NULL, x INTEGER, PRIMARY KEY (w, n))",
        f"CREATE TABLE things (id INTEGER NOT NULL PRIMARY KEY, t VARCHAR(60), b {binary})",
    )
    track(engine, ["words", "things"], TriggerOptions(style=Style.FIELD))
    return engine


def written(engine: Engine, table: str, **values: object) -> list[tuple[int, str, str | None, str | None, str | None]]:
    """Insert one row, delete it again, and return the insert's log."""
    names = ", ".join(values)
    binds = ", ".join(f":{name}" for name in values)
    with engine.connect() as connection:
        connection.execute(text("DELETE FROM event_log"))
        connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({binds})"), values)
        connection.execute(text(f"DELETE FROM {table}"))
        connection.commit()
    return logged(engine)


@one_database
@given(word=any_text.filter(bool), number=st.integers(-(2**31), 2**31 - 1))
@example(word=", ; ' + \" = \\ < >", number=0)
@example(word=" ", number=-1)
@example(word="a ", number=1)
@example(word="a\n", number=1)
@example(word="a \n", number=1)
def test_a_key_is_written_by_the_grammar_and_reads_back(keyed: Engine, word: str, number: int) -> None:
    keys = {row[1] for row in written(keyed, "words", w=word, n=number)}
    assert keys == {format_parts([("w", word), ("n", str(number))])}
    assert parse(keys.pop()).columns == {"w": word, "n": str(number)}


@one_database
@given(value=st.binary(max_size=50))
@example(value=b"")
@example(value=b"\x00")
@example(value=bytes(range(256)))
def test_binary_is_base64(keyed: Engine, value: bytes) -> None:
    rows = written(keyed, "things", id=1, t="x", b=value)
    assert [row[4] for row in rows if row[2] == "b"] == [base64.b64encode(value).decode()]


NAMES = ("it's :mixed", "50% %s", "100%%", "a$b`c", "back\\slash", "Größe", "new")


def test_names_that_need_quotes_are_quoted_in_sql_and_not_in_the_log(engine: Engine) -> None:
    install(engine)
    key = dialect_of(engine).quote("Select")
    for name in NAMES:
        table, column = dialect_of(engine).quote(f"Order {name}"), dialect_of(engine).quote(name)
        run(engine, f"CREATE TABLE {table} ({key} INTEGER NOT NULL PRIMARY KEY, {column} VARCHAR(9))")
        track(engine, [f"Order {name}"], TriggerOptions(style=Style.FIELD, when=f"{table}.{column} <> '5%'"))
        assert left_by(engine, f"INSERT INTO {table} VALUES (1, 'a'), (2, '5%')") == [(1, "Select=1", name, None, "a")]
    assert {state.state for state in trigger_states(engine)} == {TriggerCondition.CURRENT}


FEW, MANY = 2, 9
TABLES = ("usr", '"Mixed Name"', '"it\'s"', "grp")
COLUMNS = ["a", "B", '"c d"']


@st.composite
def made(draw: st.DrawFn) -> list[str]:
    """Draw tables with keys and foreign keys declared in every possible way."""
    keys = {table: draw(st.permutations(COLUMNS))[: draw(st.integers(1, 3))] for table in TABLES}
    statements = []
    for table, key in keys.items():
        parts = ["a INTEGER", "B INTEGER", '"c d" TEXT', f"PRIMARY KEY ({', '.join(key)})"]
        for own in draw(
            st.lists(st.sampled_from([COLUMNS[:1], COLUMNS[:2], COLUMNS[1:]]), unique_by=tuple, max_size=2)
        ):
            other = draw(st.sampled_from([*TABLES, "USR", "nowhere"]))
            theirs = draw(st.permutations(COLUMNS))[: len(own)]
            unnamed = len(keys.get(other, ())) == len(own) and draw(st.booleans())
            parts.append(
                f"FOREIGN KEY ({', '.join(own)}) REFERENCES {other}" + f" ({', '.join(theirs)})" * (not unnamed)
            )
        statements.append(f"CREATE TABLE {table} ({', '.join(parts)})")
    return statements


# SQLAlchemy reads the names of constraints from the text of a table, and stumbles where a reference names no columns.
@pytest.mark.filterwarnings("ignore:WARNING. SQL-parsed foreign key constraint:sqlalchemy.exc.SAWarning")
@example(
    [
        "CREATE TABLE usr (a INTEGER, B INTEGER, PRIMARY KEY (a))",
        "CREATE TABLE grp (a INTEGER, B INTEGER, FOREIGN KEY (a) REFERENCES usr, FOREIGN KEY (a, B) REFERENCES usr (a, B))",
    ]
)
@given(made())
def test_keys_are_those_that_sqlalchemy_tells(statements: list[str]) -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))
        assert told(connection) == expected(connection)
    engine.dispose()


def told(connection: Connection) -> dict[str, object]:
    schema = Schema(connection, None)
    shapes = [schema.shape(name) for name in schema.tables]
    return {
        shape.name: (shape.key, sorted((key.columns, key.table, key.referred) for key in shape.foreign))
        for shape in shapes
    }


def expected(connection: Connection) -> dict[str, object]:
    inspector = inspect(connection)
    return {
        name: (
            tuple(inspector.get_pk_constraint(name)["constrained_columns"]),
            sorted(
                (tuple(key["constrained_columns"]), key["referred_table"], tuple(key["referred_columns"]))
                for key in inspector.get_foreign_keys(name)
            ),
        )
        for name in inspector.get_table_names()
    }
