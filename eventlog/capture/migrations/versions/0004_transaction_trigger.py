"""Gives an own log the column for transactions that triggers fill, where no default can name the
transaction that runs.

Such a log also gets an index of its waiting rows alone, where an expression makes one, and has more
numbers in hand.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import context, op

from eventlog.capture.install import SEQUENCE, is_adopted, noted
from eventlog.sql.dialect import Dialect, dialect_of, log_holes, offers, statement, waiting_number
from eventlog.sql.names import TRANSACTION, LogNames

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    dialect = dialect_of(op.get_bind())
    if not offers(dialect, "transaction_declared") or is_adopted(names):
        return
    op.add_column(names.table, sa.Column(TRANSACTION, dialect.types.log_number), schema=names.schema)
    _replace_index(names, dialect, [sa.text(waiting_number(dialect, names))])
    sequence = names.sequence or noted(names).get(SEQUENCE)
    holes = log_holes(dialect, names) | {"sequence": dialect.qualified(names.schema, sequence or "")}
    op.execute(statement(dialect, "cached_sequence" if sequence else "cached_numbers", **holes))


def downgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    dialect = dialect_of(op.get_bind())
    if not offers(dialect, "transaction_declared") or is_adopted(names):
        return
    _replace_index(names, dialect, [names.column("status"), names.column("record_id")])
    # Former versions filled the column by a trigger, which would not compile without it.
    trigger = dialect.qualified(names.schema, dialect.shortened(f"{names.table}_tx"))
    text = statement(dialect, "transaction_trigger_drop", dropped=dialect.literal(f"DROP TRIGGER {trigger}"))
    # Else a colon before a name would begin a parameter.
    op.execute(text.replace(":", "\\:"))
    op.drop_column(names.table, TRANSACTION, schema=names.schema)


def _replace_index(names: LogNames, dialect: Dialect, columns: list[Any]) -> None:
    """Another index of waiting rows: the one before keeps an entry for every row that was ever
    published.
    """
    name = dialect.shortened(f"{names.table}_new")
    op.drop_index(name, names.table, schema=names.schema)
    op.create_index(name, names.table, columns, schema=names.schema)
