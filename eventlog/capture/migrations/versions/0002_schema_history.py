"""Makes the companion table that keeps what captured tables looked like, version by version."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    if _is_there(names):
        return
    types = dialect_of(op.get_bind()).types
    op.create_table(
        names.history,
        sa.Column("table_name", sa.String(200), primary_key=True),
        sa.Column("table_version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("seen_at", sa.String(40), nullable=False),
        sa.Column("changed", types.log_value),
        sa.Column("definition", types.log_value),
        schema=names.schema,
        **types.table_options,
    )


def downgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    if context.is_offline_mode() or _is_there(names):
        op.drop_table(names.history, schema=names.schema)


def _is_there(names: LogNames) -> bool:
    """Where each statement is a transaction of its own, it may be there from an install that broke
    off, or gone.
    """
    if context.is_offline_mode():
        return False
    return sa.inspect(op.get_bind()).has_table(names.history, schema=names.schema)
