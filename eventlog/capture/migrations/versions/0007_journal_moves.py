"""Moves what the marks say of each output into the tables of the journal, and back.

From here on only the journal says what an output lacks. A publisher of a former version that still
runs as a standby cannot go on with such a log, and ends.
"""

from __future__ import annotations

from alembic import context, op

from eventlog.capture.migrations.moving import move_up
from eventlog.capture.migrations.moving_back import move_down
from eventlog.sql.names import LogNames

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    # A script is printed only where there is nothing to be moved.
    if not context.is_offline_mode():
        move_up(op.get_bind(), names)


def downgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    if not context.is_offline_mode() and not context.config.attributes.get("leaving"):
        move_down(op.get_bind(), names)
