"""Lines of progress, off a terminal: only where something has moved."""

from __future__ import annotations

import pytest

from eventlog.cli import watching
from eventlog.cli.watching import ProgressLines


def test_a_line_comes_only_when_something_has_moved(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LINE_SECONDS", 0.0)
    lines = ProgressLines()
    lines.begin("deciding", 10)
    for rows in (0, 3, 3, 3, 10):
        lines.show(rows)
    lines.begin("writing", 10)
    lines.show(0)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.partition(" rows")[0] for line in err.splitlines()] == ["deciding: 3 of 10", "deciding: 10 of 10"]
