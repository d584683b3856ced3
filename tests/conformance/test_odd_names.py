"""Names that a database takes: dots, quotes, backticks, blanks; and a table that cannot be tracked keeps no other from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states, untrack
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.table_names import read_name, write_name
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.database.mirror import Mirrors
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.dialect import dialect_of
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.logged import run

TABLES = ("a.b", "b", 'quo"te', "back`tick", "two words", "ok", 'a".b')
COLUMNS = ("c.d", "e`f", "g h")


@pytest.mark.parametrize(
    "pair", [("s", "t"), ("a.b", "c"), ("a", "b.c"), ('a"', '".b'), ("", "a.b"), ("", "t"), ('"', '""')]
)
def test_a_name_is_read_as_it_was_written(pair: tuple[str, str]) -> None:
    assert read_name(write_name(*pair)) == pair


def make_tables(engine: Engine) -> None:
    """Make tables of these names."""
    quote = engine.dialect.identifier_preparer.quote_identifier
    columns = ", ".join(f"{quote(name)} VARCHAR(20)" for name in COLUMNS)
    run(engine, *[f"CREATE TABLE {quote(name)} (k INTEGER NOT NULL PRIMARY KEY, {columns})" for name in TABLES])


def change(engine: Engine) -> None:
    quote = engine.dialect.identifier_preparer.quote_identifier
    for number, name in enumerate(TABLES):
        run(engine, f"INSERT INTO {quote(name)} VALUES ({number}, 'x', 'y', 'z')")
        run(engine, f"UPDATE {quote(name)} SET {quote(COLUMNS[0])} = 'new', {quote(COLUMNS[1])} = NULL")


@pytest.mark.parametrize("style", [Style.IMAGE, Style.FIELD, Style.ROW_BACK])
def test_every_table_is_tracked_published_and_mirrored(engine: Engine, tmp_path: Path, style: Style) -> None:
    install(engine)
    make_tables(engine)
    left: list[str] = []
    track(engine, ["*"], TriggerOptions(style=style), leave=left.append)
    assert left == []
    assert {state.state for state in trigger_states(engine)} == {TriggerCondition.CURRENT}
    change(engine)
    url = engine.url.render_as_string(hide_password=False)
    into = f"sqlite:///{tmp_path / 'mirror.db'}"
    outputs = (
        DatabaseOutput(url=into, name="rows"),
        FilesOutput(path=str(tmp_path / "messages"), name="messages", format="messages"),
    )
    source = SourceConfig(url=url)
    with Publisher(Config(source=source, publisher=PublisherConfig(allow_loopback=True), output=outputs)) as publisher:
        for _ in range(3):
            publisher.run_once()
    with engine.connect() as connection:
        assert {*connection.execute(text("SELECT status FROM event_log")).scalars()} == {"S"}
    from sqlalchemy import create_engine

    mirror = create_engine(into)
    applied = {one.mirror for one in Mirrors(mirror).apply()}
    assert applied == {f"{name}__mirror" for name in TABLES}
    with mirror.connect() as connection:
        quote = mirror.dialect.identifier_preparer.quote_identifier
        for number, name in enumerate(TABLES):
            assert connection.execute(text(f"SELECT * FROM {quote(name + '__mirror')}")).all() == [
                (number, "new", None, "z")
            ]
    mirror.dispose()


def test_a_table_that_cannot_be_tracked_is_left_out_by_its_name(engine: Engine) -> None:
    install(engine)
    quote = engine.dialect.identifier_preparer.quote_identifier
    run(
        engine,
        f"CREATE TABLE aa ({quote('k=v')} INTEGER NOT NULL PRIMARY KEY, v INTEGER)",
        "CREATE TABLE bb (k INTEGER NOT NULL PRIMARY KEY, v INTEGER)",
    )
    left: list[str] = []
    track(engine, ["*"], leave=left.append)
    assert [note for note in left if "aa is left out" in note]
    assert {state.table for state in trigger_states(engine)} == {"bb"}


def test_tables_are_untracked_by_their_names(engine: Engine) -> None:
    install(engine)
    make_tables(engine)
    track(engine, ["*"])
    schema = None if not dialect_of(engine).schemas else engine.dialect.default_schema_name
    for name in TABLES:
        assert untrack(engine, [write_name(schema, name)]), name
    assert trigger_states(engine) == []


def test_names_with_percent_signs_reach_change_tables(engine: Engine) -> None:
    install(engine)
    quote = dialect_of(engine).quote
    columns = ", ".join(f"{quote(name)} VARCHAR(20)" for name in ("%s", "100%", "%(x)s"))
    run(engine, f"CREATE TABLE {quote('50%')} ({quote('k%')} INTEGER NOT NULL PRIMARY KEY, {columns})")
    track(engine, ["50%"], TriggerOptions(style=Style.IMAGE))
    run(engine, f"INSERT INTO {quote('50%')} VALUES (1, 'x', 'y', 'z')")
    url = engine.url.render_as_string(hide_password=False)
    output = (DatabaseOutput(url=url, name="rows"),)
    settings = PublisherConfig(allow_loopback=True)
    with Publisher(Config(source=SourceConfig(url=url), publisher=settings, output=output)) as publisher:
        publisher.run_once()
    Mirrors(engine).apply()
    with engine.connect() as connection:
        read = f"SELECT * FROM {quote('50%__mirror')}"
        assert connection.execute(text(read)).all() == [(1, "x", "y", "z")]


@pytest.mark.parametrize("style", [Style.IMAGE, Style.FIELD, Style.ROW_BACK])
def test_names_that_differ_by_case_alone_are_told_apart(postgresql: Engine, tmp_path: Path, style: Style) -> None:
    install(postgresql)
    # Only one of them can be tracked; the others are in its schema, which the publisher knows.
    for name in ("TWIN", "twin", "Twin"):
        run(
            postgresql,
            f'CREATE TABLE "{name}" ("K" INTEGER, k INTEGER, "V" VARCHAR(9), v VARCHAR(9), PRIMARY KEY ("K", k))',
        )
    track(postgresql, ["Twin"], TriggerOptions(style=style))
    run(postgresql, "INSERT INTO \"Twin\" VALUES (1, 2, 'one', 'other')")
    source = SourceConfig(url=postgresql.url.render_as_string(hide_password=False))
    outputs = (FilesOutput(path=str(tmp_path)),)
    with Publisher(Config(source=source, publisher=PublisherConfig(allow_loopback=True), output=outputs)) as publisher:
        publisher.run_once()
    with postgresql.connect() as connection:
        assert {*connection.execute(text("SELECT status FROM event_log")).scalars()} == {"S"}
    [told] = [file.read_text() for file in tmp_path.glob("*.xml")]
    assert 'class-name="Twin"' in told
    assert "<association>K=1+k=2,table=Twin," in told
    for column, value in (("V", "one"), ("v", "other")):
        written = told[told.index(f'attr-name="{column}"') :]
        assert written[: written.index("</value>")].endswith(f">{value}")
