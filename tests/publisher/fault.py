"""One fault that is put into the publisher, and the files that have them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
JOURNAL, WRITING, CONSUMER, TAKE, SENDING = "journal.py", "writing.py", "consumer.py", "selection.py", "sending.py"
READER, MEMORY, UNSEALED, LETTERS = "reader.py", "memory.py", "new_rows.py", "row_outcomes.py"
MAKING, UNREAD, VIEW, DECIDE = "planner.py", "blocked_rows.py", "journal_view.py", "decide.py"
TARGET, QUEUE = "output_target.py", "output_queue.py"
COMMON, CARE = "sql/common/journal.sql", "care/journal.py"


class JournalFault(NamedTuple):
    """What is wrong, where, and by which change of the text."""

    what: str
    file: str
    right: str
    wrong: str

    @property
    def path(self) -> Path:
        return Path("eventlog") / (self.file if "/" in self.file else f"publisher/{self.file}")
