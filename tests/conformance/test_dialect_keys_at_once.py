"""Keys of all tables of SQLite by one question each: the answers are SQLAlchemy's, which asks for each table."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine, inspect, text

from eventlog.sql.shapes import Schema

FEW, MANY = 2, 9
TABLES = ("usr", '"Mixed Name"', '"it\'s"', "grp")
COLUMNS = ["a", "B", '"c d"']


@st.composite
def made(draw: st.DrawFn) -> list[str]:
    """Tables whose keys and foreign keys are declared in any of the ways that there are."""
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
