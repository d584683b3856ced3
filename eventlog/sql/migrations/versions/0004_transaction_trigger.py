"""Gives an own log the column for transactions that triggers fill, where no default can name the transaction that runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

from eventlog.sql.dialect import dialect_of, offers, statement
from eventlog.sql.install import is_adopted
from eventlog.sql.names import TRANSACTION, LogNames

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    dialect = dialect_of(op.get_bind())
    if offers(dialect, "transaction_declared") and not is_adopted(names):
        op.add_column(names.table, sa.Column(TRANSACTION, dialect.types.log_number), schema=names.schema)


def downgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    dialect = dialect_of(op.get_bind())
    if offers(dialect, "transaction_declared") and not is_adopted(names):
        # Former versions filled it by a trigger, which would not compile without the column.
        trigger = dialect.qualified(names.schema, dialect.shortened(f"{names.table}_tx"))
        text = statement(dialect, "transaction_trigger_drop", dropped=dialect.literal(f"DROP TRIGGER {trigger}"))
        op.execute(text.replace(":", "\\:"))
        op.drop_column(names.table, TRANSACTION, schema=names.schema)
