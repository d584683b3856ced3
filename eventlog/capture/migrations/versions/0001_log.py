"""Makes the log table with its companions; of a log that somebody else made, only these.

What is there already stays: where each statement is a transaction of its own, an install may have
broken off.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.schema import CreateSequence, CreateTable, DropSequence

from eventlog.capture.install import SEQUENCE, TABLESPACE, recall_log
from eventlog.capture.log_tables import companion_tables, log_domains, log_sequence, log_table
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames
from eventlog.tracked.registry import MADE

revision = "0001"
down_revision = None


def upgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    dialect = dialect_of(op.get_bind())
    setup, *others = companion_tables(names, dialect).tables.values()
    _make(setup)
    known = recall_log(names)
    # It is ours if a note said so before it was made, and else somebody's own.
    is_ours = MADE in known or not _is_there(names.table, names.schema)
    # A log of somebody else's has no sequence of ours.
    own = {SEQUENCE: names.sequence, MADE: names.table} if is_ours else {}
    _note(setup, known, own | {TABLESPACE: context.config.attributes["storage"].tablespace})
    if is_ours:
        log = log_table(names, dialect, context.config.attributes["order"])
        if not _is_there(names.table, names.schema):
            for domain in log_domains(names, dialect).values():
                domain.create(op.get_bind(), checkfirst=False)
            if names.sequence:
                op.execute(CreateSequence(log_sequence(names.sequence, names, dialect)))
        _make(log)
    for table in others:
        _make(table)


def downgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    bind, asks = op.get_bind(), not context.is_offline_mode()
    dialect, known = dialect_of(bind), recall_log(names)
    setup, *others = companion_tables(names, dialect).tables.values()
    for table in others:
        table.drop(bind, checkfirst=asks)
    if MADE in known:
        log_table(names, dialect).drop(bind, checkfirst=asks)
        # After the table, whose columns have their types.
        for domain in log_domains(names, dialect).values():
            domain.drop(bind, checkfirst=asks)
    if SEQUENCE in known:
        op.execute(DropSequence(log_sequence(known[SEQUENCE], names, dialect)))
    setup.drop(bind, checkfirst=asks)


def _is_there(table: str, schema: str | None) -> bool:
    # A script is printed without a database that could be asked.
    return not context.is_offline_mode() and sa.inspect(op.get_bind()).has_table(table, schema=schema)


def _make(table: sa.Table) -> None:
    """Create the missing parts of a table and its indexes."""
    is_there = _is_there(table.name, table.schema)
    if not is_there:
        op.execute(CreateTable(table))
    for index in sorted(table.indexes, key=lambda one: str(one.name)):
        index.create(op.get_bind(), checkfirst=is_there)


def _note(setup: sa.Table, known: Mapping[str, str], wanted: Mapping[str, str | None]) -> None:
    """Note the log's owner and installation options; keep notes already there."""
    missing = [{"name": name, "value": value} for name, value in wanted.items() if value and name not in known]
    if missing:
        op.bulk_insert(setup, missing)
