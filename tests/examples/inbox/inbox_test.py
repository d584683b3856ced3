"""What every sink must do, asked of the inbox."""

import sqlite3
from pathlib import Path

import pytest
from eventlog_inbox import Inbox, InboxSink

from eventlog.testing import SinkSuite, SinkTarget


class TestInbox(SinkSuite):
    @pytest.fixture
    def target(self, tmp_path: Path) -> SinkTarget:
        file = str(tmp_path / "inbox.db")
        return SinkTarget(
            make=lambda: InboxSink(Inbox(path=file)),
            ids=lambda: [row[0] for row in sqlite3.connect(file).execute("SELECT id FROM inbox ORDER BY number")],
        )
