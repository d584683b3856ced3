"""Gives an own log a column behind the ten: the transaction that wrote the row, where the database can say it.

What a row's system column says is no such number: a savepoint has one of its own, and so has a requeue.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

from eventlog.sql.dialect import dialect_of
from eventlog.sql.install import ADOPTED
from eventlog.sql.names import TRANSACTION, LogNames

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    dialect = dialect_of(op.get_bind())
    if dialect.transaction is None or _adopted(names):
        return
    # In two steps: rows that are there already were not written by this transaction.
    op.add_column(names.table, sa.Column(TRANSACTION, dialect.types.log_number), schema=names.schema)
    op.alter_column(names.table, TRANSACTION, server_default=sa.text(dialect.transaction), schema=names.schema)


def downgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    if dialect_of(op.get_bind()).transaction is not None and not _adopted(names):
        op.drop_column(names.table, TRANSACTION, schema=names.schema)


def _adopted(names: LogNames) -> bool:
    """Whether somebody else made the log; it is not altered then."""
    if context.is_offline_mode():
        found: dict[str, str] = context.config.attributes.get("marks", {})
        return ADOPTED in found
    marks = sa.table(names.marks, sa.column("name"), schema=names.schema)
    query = sa.select(sa.func.count()).select_from(marks).where(marks.c.name == ADOPTED)
    return bool(op.get_bind().execute(query).scalar())
