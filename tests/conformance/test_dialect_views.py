"""Views with pk_ columns are captured where their INSTEAD OF triggers do the writing, on databases that have these."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.core.errors import InstallError
from eventlog.sql.dialect import dialect_of
from tests.conformance.cases import FIELDS, Case, came, changed, check_left, gone
from tests.support.logged import run

MADE = (
    "CREATE TABLE person (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(64), boss INTEGER, phone VARCHAR(9))",
    "CREATE VIEW v AS SELECT id AS pk_id, name AS sv_name, boss AS fk__id__boss, phone AS mv_phone FROM person",
)
VALUES = "NEW.pk_id, NEW.sv_name, NEW.fk__id__boss, NEW.mv_phone"
POSTGRESQL_FUNCTION = f"""
CREATE FUNCTION w() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN DELETE FROM person WHERE id = OLD.pk_id; END IF;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  INSERT INTO person VALUES ({VALUES});
  RETURN NEW;
END $$
"""
WRITERS = {
    "sqlite": (
        f"CREATE TRIGGER w_i INSTEAD OF INSERT ON v BEGIN INSERT INTO person VALUES ({VALUES}); END",
        (
            "CREATE TRIGGER w_u INSTEAD OF UPDATE ON v BEGIN UPDATE person SET id = NEW.pk_id, name = NEW.sv_name,"
            " boss = NEW.fk__id__boss, phone = NEW.mv_phone WHERE id = OLD.pk_id; END"
        ),
        "CREATE TRIGGER w_d INSTEAD OF DELETE ON v BEGIN DELETE FROM person WHERE id = OLD.pk_id; END",
    ),
    "postgresql": (
        POSTGRESQL_FUNCTION,
        "CREATE TRIGGER w INSTEAD OF INSERT OR UPDATE OR DELETE ON v FOR EACH ROW EXECUTE FUNCTION w()",
    ),
}
CHANGED = "UPDATE v SET fk__id__boss = NULL, mv_phone = '33'"


@pytest.fixture(params=sorted(WRITERS))
def bare(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(request.param)
    return found


def test_changes_through_the_view_are_logged_by_its_prefixes_and_written(bare: Engine) -> None:
    case = Case(
        made=(*MADE, *WRITERS[dialect_of(bare).name]),
        tables=("v",),
        left={
            "INSERT INTO v VALUES (1, 'Jack', 2, '22')": came("pk_id=1", name="Jack", fk_boss="2", phone="22"),
            CHANGED: changed("pk_id=1", fk_boss=("2", None), phone=("22", "33")),
            "UPDATE v SET pk_id = 2": [*gone("pk_id=1"), *came("pk_id=2", name="Jack", phone="33")],
            "DELETE FROM v": gone("pk_id=2"),
        },
    )
    check_left(bare, case)


@pytest.mark.parametrize(
    "view, said", [("v", "no INSTEAD OF trigger that writes"), ("plain", "no column whose name begins with pk_")]
)
def test_a_view_that_nobody_writes_or_that_has_no_key_is_refused(bare: Engine, view: str, said: str) -> None:
    install(bare)
    run(bare, *MADE, "CREATE VIEW plain AS SELECT id, name FROM person")
    with pytest.raises(InstallError, match=said):
        track(bare, [view], FIELDS)
