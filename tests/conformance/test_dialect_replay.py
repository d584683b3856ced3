"""Whatever is done to a table, and however it ends, the log says what the table says: statements at random on a real server."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.sql.dialect import dialect_of
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.examples import examples
from tests.support.logged import USR, Logged, logged, run
from tests.support.servers import databases

COLUMNS = ("fname", "lname", "age")
Held = dict[str, dict[str, str]]
Work = list[tuple[list[str], bool]]
"""Transactions: their statements, and whether they are committed."""

keys = st.integers(1, 6)
texts = st.sampled_from(["NULL", "'a'", "'b'", "'B'", "'b '", "''"])
numbers = st.sampled_from(["NULL", "0", "7"])
places = st.one_of(st.just("1 = 1"), *(keys.map(f"idu {sign} {{}}".format) for sign in ("=", "<", ">")))
rows = st.tuples(keys, texts, texts, numbers).map(lambda row: "({}, {}, {}, {})".format(*row))
values = st.lists(rows, min_size=1, max_size=3).map(", ".join)
statements = st.one_of(
    values.map("INSERT INTO usr VALUES {}".format),
    values.map("UPSERT {}".format),
    st.tuples(texts, places).map(lambda drawn: "UPDATE usr SET fname = {} WHERE {}".format(*drawn)),
    st.tuples(numbers, texts, places).map(lambda drawn: "UPDATE usr SET age = {}, lname = {} WHERE {}".format(*drawn)),
    st.tuples(st.sampled_from([1, -1, 10]), places).map(
        lambda drawn: "UPDATE usr SET idu = idu + {} WHERE {}".format(*drawn)
    ),
    st.tuples(keys, keys, texts).map(
        lambda drawn: "UPDATE usr SET idu = {0}, fname = {2} WHERE idu = {1}".format(*drawn)
    ),
    places.map("DELETE FROM usr WHERE {}".format),
)
work = st.lists(st.tuples(st.lists(statements, min_size=1, max_size=3), st.booleans()), min_size=1, max_size=5)
UPSERTS = {
    "mysql": "INSERT INTO usr VALUES {} ON DUPLICATE KEY UPDATE fname = 'met', age = age + 1",
    "sqlite": "INSERT INTO usr VALUES {} ON CONFLICT (idu) DO UPDATE SET fname = 'met', age = usr.age + 1",
}
UPSERTS["postgresql"] = UPSERTS["sqlite"]


@pytest.fixture
def style() -> Style:
    """Return the style for tests without one of their own."""
    return Style.ROW_BACK


@pytest.fixture(params=[*databases(), "postgresql, row triggers"])
def usr(request: pytest.FixtureRequest, style: Style) -> Engine:
    """Track a table on each database, on PostgreSQL with both kinds of triggers."""
    name, _, kind = request.param.partition(", ")
    engine: Engine = request.getfixturevalue(name)
    install(engine)
    run(engine, *USR)
    track(engine, ["usr"], TriggerOptions(style=style, rows=bool(kind)))
    return engine


def done(engine: Engine, transactions: Work) -> None:
    """Run the transactions; roll back those the database refuses."""
    upsert = UPSERTS[dialect_of(engine).name]
    for parts, wanted in transactions:
        with engine.connect() as connection:
            try:
                for part in parts:
                    said = upsert.format(part.removeprefix("UPSERT ")) if part.startswith("UPSERT") else part
                    connection.execute(text(said))
            except DBAPIError:
                connection.rollback()
            (connection.commit if wanted else connection.rollback)()


def state(engine: Engine) -> Held:
    with engine.connect() as connection:
        found = connection.execute(text("SELECT idu, fname, lname, age FROM usr"))
        return {f"idu={row[0]}": filled(dict(zip(COLUMNS, row[1:], strict=True))) for row in found}


def filled(row: dict[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in row.items() if value is not None}


def replayed(rows: list[Logged]) -> Held:
    """Replay the log as a consumer does, and return its rows."""
    held: dict[str, dict[str, object]] = {}
    for kind, key, column, old, new in rows:
        if kind == 4:
            assert held.pop(key, None) is not None, f"{key} left without having come"
            continue
        row = held.setdefault(key, {})
        if column is not None:
            assert kind == 1 or row.get(column) == old, f"{column} of {key} was {row.get(column)!r} and not {old!r}"
            row[column] = new
    return {key: filled(row) for key, row in held.items()}


@given(transactions=work)
@examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@pytest.mark.parametrize("style", [Style.FIELD, Style.ROW_BACK])
def test_the_log_says_what_the_table_says(usr: Engine, style: Style, transactions: Work) -> None:
    run(usr, "DELETE FROM usr")
    run(usr, "DELETE FROM event_log")
    done(usr, transactions)
    held, found = replayed(logged(usr)), state(usr)
    assert (held if style is Style.FIELD else set(held)) == (found if style is Style.FIELD else set(found))
