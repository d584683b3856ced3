"""Gives an own log the column for transactions, and what fills it, where no default can name the transaction that runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

from eventlog.sql.dialect import Dialect, dialect_of, offers, statement
from eventlog.sql.install import is_adopted
from eventlog.sql.names import TRANSACTION, LogNames

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    dialect = dialect_of(op.get_bind())
    if not offers(dialect, "transaction_trigger") or is_adopted(names):
        return
    op.add_column(names.table, sa.Column(TRANSACTION, dialect.types.log_number), schema=names.schema)
    _run("transaction_trigger", names, dialect)
    _run("transaction_trigger_check", names, dialect)


def downgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    dialect = dialect_of(op.get_bind())
    if offers(dialect, "transaction_trigger") and not is_adopted(names):
        _run("transaction_trigger_drop", names, dialect)
        op.drop_column(names.table, TRANSACTION, schema=names.schema)


def _run(query: str, names: LogNames, dialect: Dialect) -> None:
    name = dialect.shortened(f"{names.table}_tx")
    trigger = dialect.qualified(names.schema, name)
    text = statement(
        dialect,
        query,
        trigger=trigger,
        name=dialect.literal(dialect.reported(name)),
        owner="USER" if names.schema is None else dialect.literal(dialect.reported(names.schema)),
        disable=dialect.literal(f"ALTER TRIGGER {trigger} DISABLE"),
        log=dialect.qualified(names.schema, names.table),
        transaction_number=dialect.quoted(TRANSACTION),
    )
    op.execute(text.replace(":", "\\:"))
