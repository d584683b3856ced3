"""A view with all its prefixes, from a change through its INSTEAD OF trigger to the document: several values, references, deletes."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.capture import Style, TriggerOptions, track
from eventlog.capture.install import install
from eventlog.daemon.publisher import Publisher
from eventlog.sql.dialect import dialect_of
from tests.integration.publishing import config_of
from tests.support.logged import run

PERSON = "NEW.pk_idu, NEW.sv_fname, NEW.fk__idu__manager"
WRITES = {
    "INSERT": f"INSERT INTO person VALUES ({PERSON}); INSERT INTO phone VALUES (NEW.pk_idu, NEW.mv_phoneno);",
    "UPDATE": "UPDATE person SET name = NEW.sv_fname, boss = NEW.fk__idu__manager WHERE id = OLD.pk_idu;",
    "DELETE": "DELETE FROM phone WHERE id = OLD.pk_idu; DELETE FROM person WHERE id = OLD.pk_idu;",
}
VIEW = (
    "CREATE VIEW view_usr AS SELECT person.id AS pk_idu, name AS sv_fname, boss AS fk__idu__manager, no AS mv_phoneno"
    " FROM person LEFT JOIN phone ON phone.id = person.id"
)
PHONE = {
    Style.ROW_BACK: '<remove-all-values/><add-value><value type="string">11</value><value type="string">22</value></add-value>',
    Style.FIELD: '<value type="string">22</value>',
}


@pytest.fixture(params=["sqlite", "postgresql"])
def view(request: pytest.FixtureRequest) -> Engine:
    engine: Engine = request.getfixturevalue(request.param)
    install(engine)
    tables = ("CREATE TABLE person (id INTEGER PRIMARY KEY, name VARCHAR(64), boss INTEGER)",)
    run(engine, *tables, "CREATE TABLE phone (id INTEGER, no VARCHAR(9))", VIEW)
    for event, writes in WRITES.items():
        if dialect_of(engine).transition_tables:
            row = "OLD" if event == "DELETE" else "NEW"
            body = f"RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {writes} RETURN {row}; END $$"
            run(engine, f"CREATE FUNCTION w_{event}() {body}")
            done = f"FOR EACH ROW EXECUTE FUNCTION w_{event}()"
        else:
            done = f"BEGIN {writes} END"
        run(engine, f"CREATE TRIGGER w_{event} INSTEAD OF {event} ON view_usr {done}")
    return engine


def bodies(engine: Engine, folder: Path) -> list[str]:
    """The events of what is published now."""
    with Publisher(config_of(engine, folder, batch_size=128)) as publisher:
        publisher.run_once()
    [document] = folder.glob("*.xml")
    body = document.read_text().split("<input>")[1].split("</input>")[0]
    document.unlink()
    return [line.strip() for line in body.splitlines() if line.strip()]


@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.FIELD])
def test_what_is_changed_through_a_view_is_published_under_its_mapped_names(
    view: Engine, tmp_path: Path, style: Style
) -> None:
    track(view, ["view_usr"], TriggerOptions(style=style))
    run(view, "INSERT INTO phone VALUES (1, '11')", "INSERT INTO view_usr VALUES (1, 'Jack', 2, '22')")
    place = "table=view_usr,schema=public" if dialect_of(view).schemas else "table=view_usr"
    told = "\n".join(bodies(view, tmp_path))
    assert f"<association>pk_idu=1,{place}</association>" in told
    assert f'<value type="dn" association-ref="pk_idu=2,{place}">2</value>' in told
    assert '<value type="string">Jack</value>' in told
    assert f'attr-name="phoneno">{PHONE[style]}</' in told
    run(view, "UPDATE view_usr SET sv_fname = 'John', fk__idu__manager = NULL")
    told = "\n".join(bodies(view, tmp_path))
    assert '<value type="string">John</value>' in told
    assert ("<remove-value>" in told) is (style is Style.FIELD)
    run(view, "DELETE FROM view_usr")
    told = "\n".join(bodies(view, tmp_path))
    # It shows the object in two rows, and each was deleted through it.
    assert (
        told.count(f"<association>pk_idu=1,{place}</association>") == told.count('<delete class-name="view_usr"') == 2
    )
