"""Gives an own log without a key an index of its processed rows by their numbers: what lists read
to have the newest rows first.

Who writes to the log does not pay for it: only the publisher adds to it, where it marks rows.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import context, op

from eventlog.capture.install import is_adopted
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames

revision = "0005"
down_revision = "0004"

MOST_ROWS = 100_000
"""Rows of a log that is indexed at once.

Writers wait meanwhile, so for a larger one `eventlog check` has a statement that lets them go on.
"""


def upgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    if not _lacks(names) or _is_large(names):
        return
    dialect = dialect_of(op.get_bind())
    status = dialect.quoted(names.column("status"))
    # Not `<> 'N'`, which leaves rows without a letter out.
    condition: dict[str, Any] = {
        f"{dialect.name}_where": sa.text(f"{status} IS DISTINCT FROM 'N'"),
    }
    op.create_index(
        _name(names),
        names.table,
        [names.column("record_id")],
        schema=names.schema,
        if_not_exists=True,
        **condition,
    )


def downgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    if _lacks(names):
        op.drop_index(_name(names), names.table, schema=names.schema, if_exists=True)


def _name(names: LogNames) -> str:
    return dialect_of(op.get_bind()).shortened(f"{names.table}_done")


def _lacks(names: LogNames) -> bool:
    """Whether the log is ours and has no key; one that somebody else made is not altered."""
    dialect = dialect_of(op.get_bind())
    return dialect.partial_indexes and not dialect.log_has_key and not is_adopted(names)


def _is_large(names: LogNames) -> bool:
    if context.is_offline_mode():
        return False
    log = sa.table(names.table, schema=names.schema)
    # Counted up to the bound only, for counting all of a large log takes minutes.
    some = sa.select(sa.literal(1)).select_from(log).limit(MOST_ROWS + 1).subquery()
    count = sa.select(sa.func.count()).select_from(some)
    return int(op.get_bind().execute(count).scalar_one()) > MOST_ROWS
