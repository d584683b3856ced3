"""The ways of capturing: ours, in their styles, and what people use instead."""

from __future__ import annotations

from functools import partial
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from bench.capture.ground import Ground, Way
from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.tracked.options import Style, TriggerOptions

NONE: Final = "no trigger"
ROW_BACK: Final = "row-back"
ROW_BACK_ROWS: Final = "row-back, row triggers"
FIELD: Final = "field"
FIELD_KEPT: Final = "field, after single-row statements"
IMAGE: Final = "image"
OF_EVERY_COLUMN: Final = ("image, every column changes", "field, every column changes")
"""The same, for a statement that changes every column and not two of six: then both write as many rows."""
PGQ: Final = "PgQ logutriga"
AUDIT: Final = "audit trigger (jsonb)"
NOTHING: Final = "a trigger that does nothing"
CONSTANT: Final = "a trigger that inserts constants"
OWN_LOG: Final = ("event_log",)
QUEUE: Final = tuple(f"pgq.event_1_{number}" for number in range(3))

AUDIT_SQL: Final = (
    (
        "CREATE TABLE audit (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(),"
        " who text NOT NULL DEFAULT session_user, tab text NOT NULL, op text NOT NULL, former jsonb, latter jsonb)"
    ),
    (
        "CREATE FUNCTION audited() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
        " IF TG_OP = 'INSERT' THEN INSERT INTO audit (tab, op, latter) VALUES (TG_TABLE_NAME, TG_OP, row_to_json(NEW)::jsonb);"
        " ELSIF TG_OP = 'UPDATE' THEN INSERT INTO audit (tab, op, former, latter)"
        " VALUES (TG_TABLE_NAME, TG_OP, row_to_json(OLD)::jsonb, row_to_json(NEW)::jsonb);"
        " ELSE INSERT INTO audit (tab, op, former) VALUES (TG_TABLE_NAME, TG_OP, row_to_json(OLD)::jsonb); END IF;"
        " RETURN NULL; END $$"
    ),
    "CREATE TRIGGER audited AFTER INSERT OR UPDATE OR DELETE ON usr FOR EACH ROW EXECUTE FUNCTION audited()",
)
PGQ_SQL: Final = (
    "CREATE EXTENSION pgq",
    "SELECT pgq.create_queue('bench')",
    "CREATE TRIGGER queued AFTER INSERT OR UPDATE OR DELETE ON usr FOR EACH ROW EXECUTE FUNCTION pgq.logutriga('bench')",
)
STATEMENT_TRIGGER: Final = (
    "CREATE TRIGGER bound AFTER UPDATE ON usr REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows"
    " FOR EACH STATEMENT EXECUTE FUNCTION bound()"
)
FUNCTION: Final = "CREATE FUNCTION bound() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {}; RETURN NULL; END $$"
NOTHING_SQL: Final = (FUNCTION.format("NULL"), STATEMENT_TRIGGER)
CONSTANT_SQL: Final = (
    "CREATE TABLE bound (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, k text, kind integer, at timestamp, tab text)",
    FUNCTION.format("INSERT INTO bound (k, kind, at, tab) VALUES ('idu=1', 6, localtimestamp, 'usr')"),
    STATEMENT_TRIGGER,
)
"""What any statement trigger costs, and any that writes one row somewhere: nobody's capture can be cheaper."""


def _tracked(engine: Engine, options: TriggerOptions) -> None:
    install(engine)
    track(engine, ["usr"], options)
    _run_all(engine, ("ALTER TABLE event_log SET (autovacuum_enabled = off)",))


def _run_all(engine: Engine, statements: tuple[str, ...]) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def _nothing(engine: Engine) -> None:
    """Leaves the table as it is."""


WAYS: Final = {
    way.name: way
    for way in (
        Way(name=NONE, make=_nothing),
        Way(name=ROW_BACK, make=partial(_tracked, options=TriggerOptions()), fills=OWN_LOG),
        Way(name=ROW_BACK_ROWS, make=partial(_tracked, options=TriggerOptions(rows=True)), fills=OWN_LOG),
        Way(name=FIELD, make=partial(_tracked, options=TriggerOptions(style=Style.FIELD)), fills=OWN_LOG),
        Way(
            name=FIELD_KEPT,
            make=partial(_tracked, options=TriggerOptions(style=Style.FIELD)),
            fills=OWN_LOG,
            single_rows=True,
        ),
        Way(name=IMAGE, make=partial(_tracked, options=TriggerOptions(style=Style.IMAGE)), fills=OWN_LOG),
        *(
            Way(name=name, make=partial(_tracked, options=TriggerOptions(style=style)), fills=OWN_LOG)
            for name, style in zip(OF_EVERY_COLUMN, (Style.IMAGE, Style.FIELD), strict=True)
        ),
        Way(name=NOTHING, make=partial(_run_all, statements=NOTHING_SQL)),
        Way(name=CONSTANT, make=partial(_run_all, statements=CONSTANT_SQL), fills=("bound",)),
        Way(name=PGQ, make=partial(_run_all, statements=PGQ_SQL), fills=QUEUE),
        Way(name=AUDIT, make=partial(_run_all, statements=AUDIT_SQL), fills=("audit",)),
    )
}


def grounds(names: tuple[str, ...], rows: int) -> tuple[dict[str, Ground], str]:
    """The ways of these names, ready, and a sentence about those that this machine cannot have."""
    found: dict[str, Ground] = {}
    missing = ""
    for name in names:
        try:
            found[name] = Ground(WAYS[name], rows)
        except SQLAlchemyError as error:
            if name != PGQ:
                raise
            why = str(getattr(error, "orig", error)).splitlines()[0]
            missing = f" {PGQ} is left out, the package postgresql-15-pgq3 being not there: {why}."
    return found, missing
