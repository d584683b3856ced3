"""Alerts and the dashboard: they ask for figures that there are, each alert fires when it should, and the runbook has it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.derived import metrics_page
from tests.support.servers import found

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "docker" / "helm" / "eventlog" / "files"
"""Helm gives nothing to a chart that lies outside of it, so they stand there, and people take them from there."""

ALERTS, TESTED = FILES / "alerts.yml", Path(__file__).with_name("alerts_test.yml")
RULES: list[dict[str, Any]] = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
DASHBOARD: dict[str, Any] = json.loads((FILES / "dashboard.json").read_text())
RUNBOOK = (ROOT / "docs" / "how-to" / "runbook.md").read_text()
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
ASKED = [*[rule["expr"] for rule in RULES], *QUERIES]
TOLD = {
    f"{name}{part}": {(label, value) for label, value in re.findall(r'`(\w+)="(\w+)"`', labels)}
    for name, kind, labels in re.findall(r"^\| `(eventlog_\w+)` \| (\w+) \| (.*?) \|", metrics_page(), re.MULTILINE)
    for part in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))
}
"""Each metric, with the values of its labels."""

TOLD |= {name: set() for name in re.findall(r"`(process_\w+)`", metrics_page())}


@pytest.fixture
def promtool() -> Path:
    """Prometheus' own judge of rules and queries."""
    return found("prometheus", "prometheus") / "usr" / "bin" / "promtool"


def judged(promtool: Path, *arguments: str | Path) -> str:
    done = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("query", ASKED)
def test_a_query_asks_for_figures_and_labels_that_there_are(query: str) -> None:
    asked = re.findall(r"((?:eventlog|process)_\w+)(?:\{(.*?)\})?", query)
    assert asked
    for name, matched in asked:
        labels = re.findall(r'(\w+)=~?"([^"]*)"', matched)
        values = [(label, value) for label, several in labels for value in several.split("|") if label != "job"]
        assert set(values) <= TOLD[name], name


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_the_runbook_says_what_to_do(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert (page, anchor) == ("docs/how-to/runbook.md", rule["alert"].lower())
    section = RUNBOOK.partition(f"\n## {rule['alert']}\n")[2].partition("\n## ")[0]
    assert "**It means**" in section
    assert "**Do**" in section


def test_the_runbook_knows_no_other_alert() -> None:
    named = re.findall(r"^## (Eventlog\w+)$", RUNBOOK, re.MULTILINE)
    assert named == [rule["alert"] for rule in RULES]


def test_each_panel_of_the_dashboard_has_its_own_number_and_place() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    taken = [
        (column, line)
        for place in places
        for column in range(place["x"], place["x"] + place["w"])
        for line in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(column for column, _ in taken) < 24


def test_each_alert_fires_when_it_should_and_only_then(promtool: Path) -> None:
    said = judged(promtool, "test", "rules", TESTED)
    assert "SUCCESS" in said
    for rule in RULES:
        assert f'alertname="{rule["alert"]}"' in TESTED.read_text()


def test_prometheus_understands_every_query_of_the_dashboard(promtool: Path, tmp_path: Path) -> None:
    queries = [re.sub(r"\$__(range|rate_interval)", "5m", query) for query in QUERIES]
    rules = [{"record": f"eventlog:panel_{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(queries)} rules found" in judged(promtool, "check", "rules", file)
