"""What somebody forges who wants the program to take a trigger of theirs for one of its own.

The marker is as `eventlog track` once wrote it into the comment of a trigger: JSON with the log, the table and the options.
Whatever the program keeps today, a comment is nobody's proof.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from tests.hardening.registry.people import session

NOTHING = "CREATE FUNCTION {schema}.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"


def marker(table: str, log: str = "capture.event_log", **options: object) -> str:
    """A marker of a table's trigger; options that are not given are the usual ones."""
    return "eventlog " + json.dumps({"log": log, "table": table, "options": options, "hash": "0123456789abcdef"})


@contextmanager
def forged(engine: Engine, comment: str, place: str = "temporary", schema: str = "mal") -> Iterator[Connection]:
    """A trigger with this comment, on a table of a login's own, temporary or not, while its session lasts; or nothing at all,
    which tells that a test asks for what is so where nobody forges.
    """
    with session(engine) as connection:
        if place == "nowhere":
            yield connection
            return
        target = "pg_temp.bait" if place == "temporary" else f"{schema}.bait"
        home = "pg_temp" if place == "temporary" else schema
        for statement in (
            f"CREATE TABLE {target} (idu integer PRIMARY KEY, fname text)",
            NOTHING.format(schema=home),
            f"CREATE TRIGGER event_log_app_usr_insert AFTER INSERT ON {target} EXECUTE FUNCTION {home}.nothing()",
        ):
            connection.exec_driver_sql(statement)
        literal = comment.replace("'", "''").replace("%", "%%")
        connection.exec_driver_sql(f"COMMENT ON TRIGGER event_log_app_usr_insert ON {target} IS '{literal}'")
        yield connection
