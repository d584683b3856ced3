"""Makes the tables of the journal, empty: nothing that is published depends on them before
migration 0007 fills them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.schema import CreateIndex, CreateTable, DropTable

from eventlog.capture.log_tables import journal_tables
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    there = _there(names)
    for table in journal_tables(names, dialect_of(op.get_bind())).tables.values():
        # Where each statement is a transaction of its own, some may be there from an upgrade that
        # broke off.
        if table.name not in there:
            op.execute(CreateTable(table))
        for index in sorted(table.indexes, key=lambda one: str(one.name)):
            if index.name not in there.get(table.name, ()):
                op.execute(CreateIndex(index))


def downgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    there = _there(names)
    for table in journal_tables(names, dialect_of(op.get_bind())).tables.values():
        if context.is_offline_mode() or table.name in there:
            op.execute(DropTable(table))


def _there(names: LogNames) -> dict[str, set[str | None]]:
    """The tables of the journal that are there, with their indexes."""
    if context.is_offline_mode():
        return {}
    inspector = sa.inspect(op.get_bind())
    return {
        table: {index["name"] for index in inspector.get_indexes(table, schema=names.schema)}
        for table in names.journal.values()
        if inspector.has_table(table, schema=names.schema)
    }
