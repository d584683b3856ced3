"""Makes the log table with its companions; of a log that somebody else made, only these.

What is there already stays: where each statement is a transaction of its own, an install may have
broken off.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.schema import CreateIndex, CreateSequence, CreateTable, DropSequence, DropTable

from eventlog.capture.install import MADE, SEQUENCE, TABLESPACE, recall_log
from eventlog.capture.log_tables import companion_tables, log_domains, log_sequence, log_table
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames
from eventlog.tracked.registry import ADOPTED

revision = "0001"
down_revision = None


def upgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    dialect = dialect_of(op.get_bind())
    setup, *others = companion_tables(names, dialect).tables.values()
    _make(setup)
    known = recall_log(names)
    # It is ours if a note said so before it was made, and else somebody's own.
    adopted = MADE not in known and _is_there(names.table, names.schema)
    _note(names, setup, known, adopted=adopted)
    if not adopted:
        log = log_table(names, dialect, context.config.attributes["order"])
        if not _is_there(names.table, names.schema):
            for domain in log_domains(names, dialect).values():
                op.execute(domain)
            if names.sequence:
                op.execute(CreateSequence(log_sequence(names.sequence, names, dialect)))
        _make(log)
    for table in others:
        _make(table)


def downgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    dialect = dialect_of(op.get_bind())
    known = recall_log(names)
    setup, *others = companion_tables(names, dialect).tables.values()
    for table in others:
        _drop(table)
    if ADOPTED not in known:
        _drop(log_table(names, dialect))
        # After the table, whose columns have their types.
        for domain in log_domains(names, dialect):
            op.execute(f"DROP DOMAIN IF EXISTS {domain}")
    if SEQUENCE in known:
        op.execute(DropSequence(log_sequence(known[SEQUENCE], names, dialect)))
    _drop(setup)


def _is_there(table: str, schema: str | None) -> bool:
    # A script is printed without a database that could be asked.
    return not context.is_offline_mode() and sa.inspect(op.get_bind()).has_table(table, schema=schema)


def _make(table: sa.Table) -> None:
    """Create the missing parts of a table and its indexes."""
    present = set[str | None]()
    if _is_there(table.name, table.schema):
        indexes = sa.inspect(op.get_bind()).get_indexes(table.name, schema=table.schema)
        present = {index["name"] for index in indexes}
    else:
        op.execute(CreateTable(table))
    for index in sorted(table.indexes, key=lambda one: str(one.name)):
        if index.name not in present:
            op.execute(CreateIndex(index))


def _drop(table: sa.Table) -> None:
    if context.is_offline_mode() or _is_there(table.name, table.schema):
        op.execute(DropTable(table))


def _note(names: LogNames, setup: sa.Table, known: dict[str, str], *, adopted: bool) -> None:
    """Note the log's owner and installation options; keep notes already there."""
    wanted: dict[str, str | None] = {}
    if adopted:
        wanted[ADOPTED] = names.table
    else:
        wanted[SEQUENCE] = names.sequence
        # A script makes a log that was not there, and can be run again by itself.
        wanted[MADE] = None if context.is_offline_mode() else names.table
    wanted[TABLESPACE] = context.config.attributes["storage"].tablespace
    missing = [{"name": name, "value": value} for name, value in wanted.items() if value and name not in known]
    if missing:
        op.bulk_insert(setup, missing)
