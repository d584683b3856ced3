"""Publishing without triggers on the whole way: a query beside a table, a policy, and `eventlog verify` of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.cli.main import exit_code
from tests.integration.publishing import url_of

CONFIG = """
[source]
kind = "compare"
url = "{source}"
tables = ["orders"]
[source.compare]
state = "{folder}/state.db"
marks = "{folder}/marks.json"
[source.compare.queries.totals]
sql = "SELECT buyer, sum(pay) AS total FROM orders WHERE note <> ':x' GROUP BY buyer"
key = ["buyer"]
types = {{buyer = "bigint", total = "bigint"}}
[[output]]
name = "lake"
format = "change-tables"
sink = "database"
url = "{source}"
[[output]]
name = "files"
format = "change-tables"
sink = "files"
path = "{folder}/out"
steps = [{{do = "rename", classes = ["totals"], attributes = {{total = "amount"}}}}]
"""


@pytest.fixture
def file(sqlite: Engine, tmp_path: Path) -> Path:
    with sqlite.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, buyer INTEGER, pay INTEGER, note TEXT)"
        )
        rows = [(number, number % 3, number, "y") for number in range(9)]
        connection.exec_driver_sql("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)
    made = tmp_path / "eventlog.toml"
    made.write_text(CONFIG.format(source=url_of(sqlite), folder=tmp_path))
    return made


def test_a_query_is_published_and_verified_as_tables_are(
    sqlite: Engine, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def verified(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        code = exit_code(["verify", "--json", *arguments, "--config", str(file)])
        out = capsys.readouterr().out
        assert code in (0, 1), out
        found = {one["table"]: one for one in json.loads(out)["tables"]}
        assert [one["problem"] for one in found.values()] == [None] * len(found)
        return {name: one["value"] + one["missing"] + one["extra"] for name, one in found.items()}

    def published() -> None:
        assert exit_code(["run", "--until-empty", "--config", str(file)]) == 0
        assert exit_code(["apply", "--database", url_of(sqlite)]) == 0

    assert exit_code(["check", "--config", str(file)]) == 0, capsys.readouterr().out
    assert "2 tables of" in capsys.readouterr().out
    published()
    held = (["--output", "lake", "--mirrors"], ["--output", "lake"], ["--output", "files"])
    for what in held:
        assert verified(*what) == {"orders": 0, "totals": 0}
    with sqlite.begin() as connection:
        connection.exec_driver_sql("UPDATE orders SET pay = pay + 1 WHERE id IN (1, 2, 4)")
    for what in held:
        assert verified(*what) == {"orders": 3, "totals": 2}
        assert verified(*what, "totals") == {"totals": 2}
    published()
    for what in held:
        assert verified(*what) == {"orders": 0, "totals": 0}
