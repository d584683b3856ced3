"""What `track` says on every database of tables whose changes no trigger will see: nothing is lost without a word."""

from __future__ import annotations

from sqlalchemy import Engine

from eventlog.capture import Style, TriggerOptions, track
from eventlog.capture.install import install
from eventlog.sql.dialect import dialect_of
from tests.support.logged import left_by, run, said_of

FIELDS = TriggerOptions(style=Style.FIELD)
TABLES = (
    "CREATE TABLE p (id INTEGER NOT NULL PRIMARY KEY)",
    """CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, p INTEGER,
       FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)""",
    "CREATE TABLE c (p INTEGER, v INTEGER, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
    """CREATE TABLE d (p INTEGER, v INTEGER,
       FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)""",
    "CREATE TABLE plain (id INTEGER NOT NULL PRIMARY KEY, p INTEGER, FOREIGN KEY (p) REFERENCES p (id))",
)


def test_what_foreign_keys_do_is_logged_or_it_is_said_that_it_is_not(engine: Engine) -> None:
    install(engine)
    run(engine, *TABLES)
    seen = dialect_of(engine).cascades_fire_triggers
    said = "t is changed by foreign keys when p is changed, and this database fires no trigger then: such changes are not logged."
    assert said_of(engine, ["t"]) == ([] if seen else [said])
    assert said_of(engine, ["plain"]) == []
    track(engine, ["p", "t"])
    run(engine, "INSERT INTO p VALUES (1)", "INSERT INTO t VALUES (7, 1)")
    told = [row for row in left_by(engine, "DELETE FROM p") if row[1] == "id=7"]
    assert told == ([(4, "id=7", None, None, None)] if seen else [])


def test_what_goes_with_its_own_parent_needs_no_word(engine: Engine) -> None:
    """The parent's delete says it all, and where values are read back so does the change of its key."""
    install(engine)
    run(engine, *TABLES)
    assert said_of(engine, ["p"]) == []
    with_values = [one for one in said_of(engine, ["p"], FIELDS) if "is changed by" in one]
    assert [one.split()[0] for one in with_values] == ([] if dialect_of(engine).cascades_fire_triggers else ["d"])


def test_a_value_that_may_be_there_twice_is_spoken_of_where_values_are_told(engine: Engine) -> None:
    install(engine)
    run(engine, *TABLES, "CREATE UNIQUE INDEX once ON c (v, p)")
    said = [one for one in said_of(engine, ["p"], FIELDS) if "value twice" in one]
    assert said == [
        (
            "d may have the same value twice under one parent (v). So, when such a value is deleted, the values that are left are"
            " read back. A unique index that also has p makes this unnecessary."
        )
    ]
    assert not any("value twice" in one for one in said_of(engine, ["p"], TriggerOptions(style=Style.FIELD_BACK)))
