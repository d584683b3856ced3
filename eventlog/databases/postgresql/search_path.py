"""In each session names without a schema are looked for in the server's own schema alone: nothing that others made there
is taken for a function or an operator of the server.

What people write without a schema is what their role's own search path finds, which is read before.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from eventlog.sql.homes import note_homes

if TYPE_CHECKING:
    from sqlalchemy import Engine

# No operator, no cast, and each name with its schema: what others made would be found as well.
_ASK: Final = """SELECT pg_catalog.array_to_json(pg_catalog.current_schemas(false)), pg_catalog.pg_backend_pid(),
pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', pg_catalog.int4ne(pg_catalog.pg_backend_pid(), {backend}))"""
_of_extension = re.compile(r'^(?:"(?:[^"]|"")+"|[^".]+)\.(?=(?:citext|hstore)(?:\[|$))')
"""The schema before a type of an extension's that SQLAlchemy knows by its name."""
_FIX: Final = "SET LOCAL search_path = pg_catalog, pg_temp"


def fix_search_path(engine: Engine) -> None:
    """Fix the search path of each session of the engine before anything else is asked there."""
    from sqlalchemy import event

    dialect: Any = engine.dialect
    usual, filter_schema = dialect.connect, dialect._pg_class_filter_scope_schema  # noqa: SLF001  # no other name
    describe_type = dialect._reflect_type  # noqa: SLF001  # no other name
    homes: list[str] = []

    def open_session(*positional: Any, **named: Any) -> Any:
        session: Any = usual(*positional, **named)
        try:
            note_and_fix(session)
        except BaseException:
            session.close()
            raise
        return session

    def note_and_fix(session: Any) -> None:
        cursor, is_alone = session.cursor(), session.autocommit
        told = getattr(getattr(session, "info", None), "backend_pid", None)
        session.autocommit = True  # one round trip in place of three
        cursor.execute(_ASK.format(backend=told or "pg_catalog.pg_backend_pid()"))
        [(searched, backend, _)] = cursor.fetchall()
        session.autocommit = is_alone
        # Anybody makes temporary tables, and the server's own schema has none of ours.
        homes[:] = [name for name in searched if not name.startswith("pg_")]
        # Behind a pooler nothing is left in a session. There each transaction begins with it, also this one, in
        # which SQLAlchemy asks a first session what it wants to know, and which ends without effect.
        if told not in (None, backend):
            cursor.execute(_FIX)
        cursor.close()

    def tell_home(_session: Any, _record: Any) -> None:
        note_homes(engine, homes)
        dialect.default_schema_name = next(iter(homes), None)
        if homes:
            engine.update_execution_options(schema_translate_map={None: homes[0]})

    def describe(sql_type: str | None, *others: Any, **named: Any) -> Any:
        kind = describe_type(sql_type and _of_extension.sub("", sql_type), *others, **named)
        # The schemas that go without saying stay unsaid.
        value = getattr(kind, "item_type", kind)
        for part in ("schema", "collation_schema"):
            if getattr(value, part, None) in homes:
                setattr(value, part, None)
        return kind

    def filter_home(query: Any, schema: str | None, *others: Any, **named: Any) -> Any:
        return filter_schema(query, schema or (homes[0] if homes else None), *others, **named)

    # SQLAlchemy's event for this keeps other listeners from being asked, and its other events come too late: it
    # asks a first session for types, with operators.
    dialect.connect = open_session
    # What it describes without a schema are tables that a search path finds.
    dialect._pg_class_filter_scope_schema = filter_home  # noqa: SLF001  # no other name
    dialect._reflect_type = describe  # noqa: SLF001  # no other name
    event.listen(engine, "connect", tell_home)
