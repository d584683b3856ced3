"""What every source must do, asked of the CSV of changes."""

from itertools import count
from pathlib import Path

import pytest
from eventlog_csv_changes import CsvChanges, CsvReader

from eventlog.testing import SourceStream, SourceSuite


class TestCsvChanges(SourceSuite):
    @pytest.fixture
    def stream(self, tmp_path: Path) -> SourceStream:
        file, numbers = tmp_path / "changes.csv", count(1)
        file.write_text("op,at,id,name\n")

        def grow() -> None:
            with file.open("a") as out:
                out.writelines(f"add,2026-11-24T10:00:00,{next(numbers)},Ada\n" for _ in range(3))

        return SourceStream(make=lambda: CsvReader(CsvChanges(path=str(file))), grow=grow)
