"""Gives an own log a column behind the ten: the transaction that wrote the row, where the database
can say it.

What a row's system column says is no such number: a savepoint has one of its own, and so has a
requeue.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

from eventlog.capture.install import is_adopted
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import TRANSACTION, LogNames

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    dialect = dialect_of(op.get_bind())
    if dialect.transaction is None or is_adopted(names):
        return
    # In two steps: rows that are there already were not written by this transaction.
    op.add_column(names.table, sa.Column(TRANSACTION, dialect.types.log_number), schema=names.schema)
    op.alter_column(names.table, TRANSACTION, server_default=sa.text(dialect.transaction), schema=names.schema)


def downgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    if dialect_of(op.get_bind()).transaction is not None and not is_adopted(names):
        op.drop_column(names.table, TRANSACTION, schema=names.schema)
