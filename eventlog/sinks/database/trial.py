"""Tries whether a database takes change tables: signs in, and makes what a publisher would make, which is undone."""

from __future__ import annotations

from eventlog.core.errors import SinkError, SourceError
from eventlog.sinks.database.control import Control
from eventlog.sinks.database.sink import DatabaseSettings
from eventlog.sql.dialect import dialect_of


def try_tables(settings: DatabaseSettings) -> str:
    """Where change tables would go; SinkError when the login, the schema or a right is missing.

    Where DDL cannot be undone nothing is made: then it is only seen that the schema is there.
    """
    from sqlalchemy import inspect

    from eventlog.sql.access import in_our_words
    from eventlog.sql.connect import connect, shown_url

    engine = connect(settings.url)
    dialect = dialect_of(engine)
    where = shown_url(engine.url)
    try:
        with in_our_words(engine, f"The database of the change tables ({where})"), engine.connect() as connection:
            if settings.schema is not None and settings.schema not in inspect(connection).get_schema_names():
                hint = "Create it and give the output's login CREATE there, or change `output.schema`."
                raise SinkError(f"{where} has no schema {settings.schema} that this login sees.", hint=hint)
            if dialect.transactional_ddl:
                if dialect.begin_ddl is not None:
                    connection.exec_driver_sql(dialect.begin_ddl)
                Control(settings.task, settings.schema).prepare(connection)
                connection.rollback()
    except SourceError as error:
        raise SinkError(error.message, hint=error.hint, may_pass=error.may_pass) from error
    finally:
        engine.dispose()
    place = where if settings.schema is None else f"schema {settings.schema} of {where}"
    return f"{place} takes change tables" if dialect.transactional_ddl else f"{place} takes our login"
