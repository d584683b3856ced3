"""Lets the history of tables say which rows of the log were written under each version, and how the
table looked then.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

from eventlog.capture.migrations.moving import opened, take_lock
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    types = dialect_of(op.get_bind()).types
    there = _columns(names)
    for name, kind in (("first_record", types.log_number), ("described", types.log_value)):
        if name not in there:
            op.add_column(names.history, sa.Column(name, kind), schema=names.schema)


def downgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    if not context.is_offline_mode() and not context.config.attributes.get("leaving"):
        # Else 0007 would refuse, after columns are gone.
        take_lock(op.get_bind(), opened(op.get_bind(), names))
    there = _columns(names)
    for name in ("described", "first_record"):
        if context.is_offline_mode() or name in there:
            op.drop_column(names.history, name, schema=names.schema)


def _columns(names: LogNames) -> set[str]:
    """MariaDB, MySQL and Oracle commit each statement by itself, so a migration that was killed may
    have made some.
    """
    if context.is_offline_mode():
        return set()
    columns = sa.inspect(op.get_bind()).get_columns(names.history, schema=names.schema)
    return {str(column["name"]) for column in columns}
