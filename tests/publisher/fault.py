"""One fault that is put into the publisher, and the files that have them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
JOURNAL, WRITING, CONSUMER, TAKE, SENDING = "journal.py", "writing.py", "consumer.py", "take.py", "sending.py"
READER, MEMORY, UNSEALED, LETTERS = "reader.py", "memory.py", "unsealed.py", "letters.py"
MAKING, UNREAD, VIEW, DECIDE = "making.py", "unread.py", "view.py", "decide.py"
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
