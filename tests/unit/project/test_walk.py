"""How far somebody walks who follows one changed row from the log to its document and to its status."""

from __future__ import annotations

from pathlib import Path

from bench.walk import walk_of_a_row

MOST = {"functions": 210, "calls": 285, "changes of file": 175}
"""Each may only become less. The goals were 220, 380 and 180; `python -m bench.walk` says how far it is."""


def test_an_updated_row_takes_few_functions_calls_and_changes_of_file(tmp_path: Path) -> None:
    walk = walk_of_a_row(tmp_path)
    taken = {"functions": walk.functions, "calls": len(walk.calls), "changes of file": walk.changes}
    assert {"publisher/journal.py", "xds/write.py"} <= walk.files
    assert {name: count for name, count in taken.items() if count > MOST[name]} == {}
