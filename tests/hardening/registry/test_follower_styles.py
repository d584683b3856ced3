"""`--follow-ddl` keeps the style of a plain table: what its triggers log after an alteration is what `eventlog track` would have
them log. PostgreSQL.
"""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states
from eventlog.tracked.options import Style, TrackRequest, TriggerOptions
from tests.support.logged import Logged, left_by, run, unnumbered

TABLE = (
    "CREATE TYPE mood AS ENUM ('low', 'high')",
    "CREATE DOMAIN code AS char(5)",
    "CREATE TABLE held (id integer PRIMARY KEY, a text, b integer, secret text, born date, the_code code, felt mood, part numeric)",
)
ALTERATIONS = {
    "add": ("ALTER TABLE held ADD COLUMN more text",),
    "drop": ("ALTER TABLE held DROP COLUMN a",),
    "rename": ('ALTER TABLE held RENAME COLUMN a TO "it\'s %s ""a"""',),
    "retype": (
        "ALTER TABLE held ALTER COLUMN b TYPE text",
        "ALTER TABLE held ALTER COLUMN a TYPE bytea USING a::bytea",
    ),
    "all": (
        "ALTER TABLE held RENAME COLUMN secret TO hidden",
        "ALTER TABLE held RENAME COLUMN b TO secret",
        "ALTER TABLE held RENAME COLUMN id TO number",
        "ALTER TABLE held ALTER COLUMN number TYPE numeric",
        "ALTER TABLE held ADD COLUMN again text",
        "ALTER TABLE held RENAME TO kept",
    ),
}
NEW = {"add": ("secret", "more"), "all": ("hidden", "again")}
"""What nobody may see afterwards where a column was left out: the same column, and the one that came later."""
CASES: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "add"),
    ({}, "all"),
    ({"exclude": ("secret",)}, "all"),
    ({"exclude": ("secret",), "rows": True}, "add"),
    ({"columns": ("a", "b"), "rows": True}, "rename"),
    ({}, "retype"),
    ({"rows": True}, "drop"),
)


def columns(engine: Engine, table: str) -> dict[int, str]:
    query = "SELECT attnum, quote_ident(attname) FROM pg_attribute WHERE attrelid = :table ::regclass AND attnum > 0 AND NOT attisdropped"
    with engine.connect() as connection:
        return {int(row[0]): str(row[1]) for row in connection.execute(text(query), {"table": table})}


def changes(engine: Engine, table: str) -> list[list[Logged]]:
    """What each of these statements leaves in the log."""
    named = columns(engine, table)
    key, others = named[1], [name for number, name in named.items() if number > 1]
    plain = [name for number, name in named.items() if number in (2, 3, 4, 9)]
    texts = ", ".join("n::text" + cast(engine, table, name) for name in plain)
    statements = [
        f"INSERT INTO {table} ({key}) VALUES (1)",
        f"INSERT INTO {table} ({key}, {', '.join(plain)}) SELECT n, {texts} FROM generate_series(2, 4) AS n",
        f"INSERT INTO {table} ({key}, {named[5]}, {named[6]}, {named[7]}, {named[8]}) VALUES (7, 'infinity', 'x', 'low', '1.50')",
        f"UPDATE {table} SET {named[5]} = '0044-03-15 BC', {named[7]} = 'high', {named[8]} = '1.5' WHERE {key} = 7",
        *(f"UPDATE {table} SET {name} = NULL WHERE {key} > 2" for name in others),
        *(f"UPDATE {table} SET {name} = {key}::text{cast(engine, table, name)} WHERE {key} < 4" for name in plain),
        f"UPDATE {table} SET {key} = {key}",
        f"UPDATE {table} SET {key} = {key} + 10, {plain[-1]} = '5'",
        f"DELETE FROM {table} WHERE {key} < 13",
        f"TRUNCATE {table}",
    ]
    return [sorted(map(unnumbered, left_by(engine, statement)), key=str) for statement in statements]


def cast(engine: Engine, table: str, column: str) -> str:
    query = "SELECT '::' || format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = :table ::regclass AND quote_ident(attname) = :name"
    with engine.connect() as connection:
        return str(connection.execute(text(query), {"table": table, "name": column}).scalar_one())


@pytest.mark.in_turn
@pytest.mark.parametrize("style", Style)
def test_an_altered_table_is_logged_in_its_style(postgresql: Engine, style: Style) -> None:
    """Whatever was left out stays so under any name; a new column is logged where all are."""
    install(postgresql)
    for options, alteration in CASES:
        run(postgresql, *TABLE)
        track(postgresql, ["held"], TriggerOptions(style=style, follow_ddl=True, **options))
        run(postgresql, *ALTERATIONS[alteration])
        table = "kept" if alteration == "all" else "held"
        followed = changes(postgresql, table)
        names_no_column = style is Style.ROW_BACK and not {"columns", "exclude"} & {*options} and alteration != "all"
        states = {state.state for state in trigger_states(postgresql)}
        assert (states == {TriggerCondition.CURRENT}) == names_no_column, (alteration, options)
        hidden = NEW.get(alteration) if options.get("exclude") else None
        track(postgresql, [table], TrackRequest(exclude=hidden))
        assert {state.state for state in trigger_states(postgresql)} == {TriggerCondition.CURRENT}
        assert followed == changes(postgresql, table), (alteration, options)
        run(
            postgresql,
            "DROP TABLE IF EXISTS held, kept",
            "DROP TYPE mood",
            "DROP DOMAIN code",
            "DELETE FROM event_log_tracked",
        )


@pytest.mark.parametrize("style", [Style.FIELD, Style.ROW_BACK])
def test_an_altered_table_with_deferred_keys_loses_no_object(postgresql: Engine, style: Style) -> None:
    """Two rows may have one key until their transaction ends: the end of one is not the end of what the other is."""
    install(postgresql)
    run(postgresql, "CREATE TABLE held (id integer, a text, PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED)")
    track(postgresql, ["held"], TriggerOptions(style=style, follow_ddl=True))
    run(postgresql, "ALTER TABLE held RENAME COLUMN a TO b", "ALTER TABLE held RENAME COLUMN id TO number")
    statements = (
        "INSERT INTO held VALUES (1, 'x'), (2, 'y')",
        "INSERT INTO held VALUES (1, 'z'); DELETE FROM held WHERE b = 'x'",
        "UPDATE held SET number = 3 - number",
        "UPDATE held SET number = number + 1",
    )
    followed = [sorted(left_by(postgresql, statement), key=str) for statement in statements]
    track(postgresql, ["held"])
    run(postgresql, "TRUNCATE held")
    assert followed == [sorted(left_by(postgresql, statement), key=str) for statement in statements]
    assert (5, "number=1", None, None, None) in followed[1]


def test_a_key_of_columns_with_other_collations_is_written(postgresql: Engine) -> None:
    """What a key is put together from has no collation of its own to be compared by."""
    install(postgresql)
    run(
        postgresql,
        "CREATE COLLATION nobodys (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        'CREATE TABLE held (a text COLLATE "POSIX", b text COLLATE nobodys, c text, PRIMARY KEY (a, b))',
    )
    track(postgresql, ["held"], TriggerOptions(style=Style.FIELD, follow_ddl=True))
    run(postgresql, "ALTER TABLE held RENAME COLUMN c TO d")
    assert left_by(postgresql, "INSERT INTO held VALUES ('a', 'B', 'c')", "UPDATE held SET b = 'b'") == [
        (1, "a=a+b=B", "d", None, "c"),
        (4, "a=a+b=B", None, None, None),
        (1, "a=a+b=b", "d", None, "c"),
    ]


@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.IMAGE])
def test_a_table_is_altered_again_after_its_triggers_were_made_anew(postgresql: Engine, style: Style) -> None:
    """The first change makes them name columns; the next one must not leave them behind."""
    install(postgresql)
    run(postgresql, "CREATE TABLE held (id integer PRIMARY KEY, a text, b text)")
    track(postgresql, ["held"], TriggerOptions(style=style, follow_ddl=True))
    run(
        postgresql,
        "ALTER TABLE held RENAME TO kept",
        "ALTER TABLE kept DROP COLUMN a",
        "ALTER TABLE kept RENAME b TO c",
    )
    left = left_by(postgresql, "INSERT INTO kept VALUES (1, 'x')", "UPDATE kept SET c = 'y'", "DELETE FROM kept")
    assert [row[:2] for row in left] == [(5, "id=1"), (6, "id=1"), (4, "id=1")]
