"""The page about performance: it shows every result that is kept, with its plot, and says what was not reached."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from bench import readme
from bench.plots import draw_all, draw_result
from bench.readme import README, SHOWN
from bench.report import RESULTS
from docs.plots import HERE, PAGE, figures


def test_every_result_is_shown() -> None:
    page = "\n".join(figures(RESULTS))
    for result in RESULTS.glob("*.json"):
        found = json.loads(result.read_text())
        assert f"### {found['name']}\n" in page
        assert all(target["measured"] in page for target in found["targets"])
        assert f"(plots/{found['name']}.svg)" in page


def test_every_result_that_is_kept_is_drawn(tmp_path: Path) -> None:
    drawn = {plot.stem for plot in draw_all(tmp_path) if plot.read_text().startswith("<?xml")}
    assert drawn == {result.stem for result in RESULTS.glob("*.json")} | {"soak"}


def test_no_plot_is_kept_but_the_readmes() -> None:
    kept = subprocess.run(["git", "ls-files", "*.svg"], capture_output=True, text=True, check=True, cwd=README.parent)
    assert kept.stdout.split() == [f"bench/results/{SHOWN}.svg"]
    assert f"bench/results/{SHOWN}.svg" in README.read_text(encoding="utf-8")


def test_the_readmes_plot_is_that_of_its_result(tmp_path: Path) -> None:
    [report] = [one for one in readme.kept() if one.name == SHOWN]
    assert draw_result(report, tmp_path / "drawn.svg").read_text() == (RESULTS / f"{SHOWN}.svg").read_text()


def test_what_was_not_reached_is_said(tmp_path: Path) -> None:
    kept = json.loads((RESULTS / "rules.json").read_text())
    kept["targets"] = [{"promise": "more", "measured": "less", "reached": False}]
    (tmp_path / "rules.json").write_text(json.dumps(kept))
    page = "\n".join(figures(tmp_path))
    assert "| more | less | **not reached** |" in page


def test_the_page_has_a_place_for_them() -> None:
    assert HERE in (Path(__file__).resolve().parents[2] / "docs" / PAGE).read_text()
