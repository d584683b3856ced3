"""The schemas in which a table may stand that is named without one.

Sessions of `connect` look for names nowhere but in the server's own schema, where a role could be misled by what others
made in those that it searches. So their engine keeps which these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from eventlog.core.errors import InstallError
from eventlog.sql.access import answers
from eventlog.sql.dialect import dialect_of, offers

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import Dialect as Compiler

_homes: WeakKeyDictionary[Compiler, tuple[str, ...]] = WeakKeyDictionary()


def note_homes(engine: Engine, schemas: Sequence[str]) -> None:
    """Note the schemas that the role of an engine's sessions searches by itself."""
    _homes[engine.dialect] = tuple(schemas)


def find_home(connection: Connection) -> str | None:
    """Find the schema in which a table stands that is named without one; None where the session finds it itself."""
    return next(iter(_homes.get(connection.dialect, ())), None)


def find_schema(connection: Connection, table: str) -> str | None:
    """Find the schema of a table that is named without one: the first that has it, else the first of all.

    None where a database has only one. Raise InstallError for two tables of different owners: the
    nearer one may be there to be taken for the other.
    """
    if not offers(dialect_of(connection), "searched_schemas"):
        return None
    homes = _homes.get(connection.dialect)
    if homes is None:  # an engine that somebody else made
        homes = tuple(str(name) for (name,) in answers(connection, "searched_schemas"))
    if len(homes) < 2:
        return next(iter(homes), None)
    having = answers(connection, "schemas_having", {"schemas": [*homes], "table": table})
    if len({owner for _, owner in having}) > 1:
        places = " and ".join(f"{schema} (of {owner})" for schema, owner in having)
        raise InstallError(f"The table {table} is in the schemas {places}.", hint="Write the schema before its name.")
    return str(having[0][0]) if having else homes[0]
