"""Views with pk_ columns are captured where their INSTEAD OF triggers do the writing, on databases that have these."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.capture import Style, TriggerCondition, TriggerOptions, track, trigger_states
from eventlog.capture.install import install
from eventlog.core.errors import InstallError
from eventlog.sql.dialect import dialect_of
from tests.support.logged import left_by, run

TABLE = "CREATE TABLE emp (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(64))"
VIEW = "CREATE VIEW view_emp AS SELECT id AS pk_id, name AS sv_name FROM emp"
SQLITE_WRITERS = (
    "CREATE TRIGGER w_i INSTEAD OF INSERT ON view_emp BEGIN INSERT INTO emp VALUES (NEW.pk_id, NEW.sv_name); END",
    "CREATE TRIGGER w_u INSTEAD OF UPDATE ON view_emp BEGIN UPDATE emp SET id = NEW.pk_id, name = NEW.sv_name WHERE id = OLD.pk_id; END",
    "CREATE TRIGGER w_d INSTEAD OF DELETE ON view_emp BEGIN DELETE FROM emp WHERE id = OLD.pk_id; END",
)
POSTGRESQL_FUNCTION = """
CREATE FUNCTION w() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN DELETE FROM emp WHERE id = OLD.pk_id; END IF;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  INSERT INTO emp VALUES (NEW.pk_id, NEW.sv_name);
  RETURN NEW;
END $$
"""
POSTGRESQL_TRIGGER = (
    "CREATE TRIGGER w INSTEAD OF INSERT OR UPDATE OR DELETE ON view_emp FOR EACH ROW EXECUTE FUNCTION w()"
)
WRITERS = {"sqlite": SQLITE_WRITERS, "postgresql": (POSTGRESQL_FUNCTION, POSTGRESQL_TRIGGER)}

PERSON_VALUES = "NEW.pk_idu, NEW.sv_fname, NEW.fk__idu__manager, NEW.mv_phoneno"
PERSON_CHANGES = (
    "UPDATE person SET name = NEW.sv_fname, boss = NEW.fk__idu__manager, phone = NEW.mv_phoneno WHERE id = OLD.pk_idu"
)
PERSON_WRITERS = {
    "sqlite": (
        f"CREATE TRIGGER p_i INSTEAD OF INSERT ON view_usr BEGIN INSERT INTO person VALUES ({PERSON_VALUES}); END",
        f"CREATE TRIGGER p_u INSTEAD OF UPDATE ON view_usr BEGIN {PERSON_CHANGES}; END",
    ),
    "postgresql": (
        (
            "CREATE FUNCTION p() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF TG_OP = 'INSERT'"
            f" THEN INSERT INTO person VALUES ({PERSON_VALUES}); ELSE {PERSON_CHANGES}; END IF; RETURN NEW; END $$"
        ),
        "CREATE TRIGGER p INSTEAD OF INSERT OR UPDATE ON view_usr FOR EACH ROW EXECUTE FUNCTION p()",
    ),
}


@pytest.fixture(params=sorted(WRITERS))
def view(request: pytest.FixtureRequest) -> Engine:
    engine: Engine = request.getfixturevalue(request.param)
    install(engine)
    run(engine, TABLE, VIEW)
    return engine


def test_changes_through_the_view_are_logged_under_its_name_and_written(view: Engine) -> None:
    run(view, *WRITERS[dialect_of(view).name])
    track(view, ["view_emp"], TriggerOptions(style=Style.FIELD))
    assert {state.state for state in trigger_states(view)} == {TriggerCondition.CURRENT}
    inserted = left_by(view, "INSERT INTO view_emp VALUES (1, 'a')")
    assert inserted == [(1, "pk_id=1", "name", None, "a")]
    assert left_by(view, "UPDATE view_emp SET sv_name = 'b'") == [(2, "pk_id=1", "name", "a", "b")]
    moved = left_by(view, "UPDATE view_emp SET pk_id = 2")
    assert moved == [(4, "pk_id=1", None, None, None), (1, "pk_id=2", "name", None, "b")]
    assert left_by(view, "DELETE FROM view_emp") == [(4, "pk_id=2", None, None, None)]


def test_a_view_that_nobody_writes_is_refused(view: Engine) -> None:
    with pytest.raises(InstallError, match="no INSTEAD OF trigger that writes"):
        track(view, ["view_emp"])


def test_a_view_without_a_key_is_refused(view: Engine) -> None:
    run(view, "CREATE VIEW plain AS SELECT id, name FROM emp")
    with pytest.raises(InstallError, match="no column whose name begins with pk_"):
        track(view, ["plain"])


def test_prefixes_say_what_a_column_is_and_the_log_calls_it_without_them(view: Engine) -> None:
    meanings = "id AS pk_idu, name AS sv_fname, boss AS fk__idu__manager, phone AS mv_phoneno"
    run(
        view,
        "CREATE TABLE person (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(64), boss INTEGER, phone VARCHAR(9))",
        f"CREATE VIEW view_usr AS SELECT {meanings} FROM person",
        *PERSON_WRITERS[dialect_of(view).name],
    )
    track(view, ["view_usr"], TriggerOptions(style=Style.FIELD))
    assert left_by(view, "INSERT INTO view_usr VALUES (1, 'Jack', 2, '22')") == [
        (1, "pk_idu=1", "fname", None, "Jack"),
        (1, "pk_idu=1", "fk_manager", None, "2"),
        (1, "pk_idu=1", "phoneno", None, "22"),
    ]
    assert left_by(view, "UPDATE view_usr SET fk__idu__manager = NULL, mv_phoneno = '33'") == [
        (2, "pk_idu=1", "fk_manager", "2", None),
        (2, "pk_idu=1", "phoneno", "22", "33"),
    ]
