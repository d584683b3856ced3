"""Runs the migrations for eventlog.capture.install: live on its connection, or as SQL into its
buffer; one path for both.

There is no ini file: the program puts the log's names, and the connection if there is one, into
`attributes`.
"""

from __future__ import annotations

from typing import Any

from alembic import context

from eventlog.sql.names import LogNames

settings = context.config.attributes
names: LogNames = settings["names"]
options: dict[str, Any] = {
    "version_table": names.version,
    "version_table_schema": names.schema,
    "transactional_ddl": settings["transactional"],
}
if context.is_offline_mode():
    # Named parameters, because the others double every percent sign in what is meant to be read and
    # run elsewhere.
    context.configure(url=settings["url"], literal_binds=True, dialect_opts={"paramstyle": "named"}, **options)
    # Oracle's would return into a variable that no script has.
    context.get_context().dialect.insert_returning = False
else:
    context.configure(connection=settings["connection"], **options)
# For what the database compiles of it: Alembic's own table has it as ours do.
compiler: Any = context.get_context().dialect
compiler.eventlog_storage = settings["storage"]
with context.begin_transaction():
    for statement in settings.get("before", ()):
        context.execute(statement.replace(":", "\\:"))
    context.run_migrations()
    for statement in settings.get("after", ()):
        context.execute(statement.replace(":", "\\:"))
