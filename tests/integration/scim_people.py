"""People whose rows a SCIM server gets."""

from __future__ import annotations

from sqlalchemy import Engine

from tests.support.scim import run, scim_site

PEOPLE = (
    "INSERT INTO usr VALUES (1, 'ada', 'Ada', 'Love', 'ada@example.com', 'R1', 7, NULL, 1)",
    "INSERT INTO usr VALUES (2, 'bob', 'Bob', 'Bee', NULL, NULL, 8, 1, 1)",
    "INSERT INTO usr VALUES (3, 'cyd', 'Cyd', 'Cee', 'c@example.com', 'R2', 9, 4, 0)",
    "INSERT INTO usr VALUES (4, 'dan', 'Dan', NULL, 'd@example.com', 'R2', 9, 3, 0)",
    "INSERT INTO usr_phone VALUES (1, '123')",
    "INSERT INTO grp VALUES (1, 'staff')",
    "INSERT INTO usr_grp VALUES (1, 1)",
    "INSERT INTO usr_grp VALUES (1, 2)",
)
ALONE = [statement.replace(", 4, 0)", ", NULL, 0)").replace(", 3, 0)", ", NULL, 0)") for statement in PEOPLE]
"""The same without managers that come later, which a database may refuse."""


def given(engine: Engine, style: str = "row-back") -> None:
    scim_site(engine, style)
    run(engine, *PEOPLE)
