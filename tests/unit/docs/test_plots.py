"""The page about performance: it shows every result that is kept, with its plot, and says what was not reached."""

from __future__ import annotations

import json
from pathlib import Path

from bench.report import RESULTS
from docs.plots import HERE, PAGE, figures


def test_every_result_is_shown() -> None:
    page = "\n".join(figures(RESULTS))
    for result in RESULTS.glob("*.json"):
        found = json.loads(result.read_text())
        assert f"### {found['name']}\n" in page
        assert all(target["measured"] in page for target in found["targets"])
    assert [plot.name for plot in RESULTS.glob("*.svg") if f"plots/{plot.name}" not in page] == []


def test_what_was_not_reached_is_said(tmp_path: Path) -> None:
    kept = json.loads((RESULTS / "rules.json").read_text())
    kept["targets"] = [{"promise": "more", "measured": "less", "reached": False}]
    (tmp_path / "rules.json").write_text(json.dumps(kept))
    page = "\n".join(figures(tmp_path))
    assert "| more | less | **not reached** |" in page
    assert "plots/" not in page


def test_the_page_has_a_place_for_them() -> None:
    assert HERE in (Path(__file__).resolve().parents[3] / "docs" / PAGE).read_text()
