"""The page that compares ways of capture has the figures of the benchmarks, and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "explanation" / "compared.md").read_text()
MEASURED = PAGE.partition("## Measured")[2].partition("## Choose")[0]


def seconds(name: str) -> dict[str, float]:
    """Seconds a unit of each contestant of a benchmark."""
    timings = json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text())["timings"]
    return {one["name"]: median(one["seconds"]) / one["units"] for one in timings}


def test_each_figure_is_one_that_was_measured() -> None:
    update, clients = seconds("capture.update"), seconds("capture.four_clients")
    beside, latency = seconds("peers.publish"), seconds("latency")
    times = ("row-back", "field", "PgQ logutriga", "audit trigger (jsonb)")
    wanted = [f"{update[name] / update['no trigger']:.2f} times" for name in times]
    wanted += [f"{clients['no trigger'] / clients['row-back']:.0%}".replace("%", " %")]
    names = ("wal2json consumer", "eventlog, a log of fields", "Debezium embedded")
    wanted += [f"{1 / beside[name]:,.0f} |" for name in names]
    parts = ("half of the changes", "99 %")
    wanted += [f"{latency[f'commit → document, {part}'] * 1000:.1f} ms" for part in parts]
    assert [figure for figure in wanted if figure not in MEASURED] == []
    said = re.findall(r"\d+\.\d+|\d+,\d+", MEASURED.replace("100,000", "").replace("50,000", ""))
    assert len(said) == len(wanted) - 1, "and no figure stands there that is not asked for above"
