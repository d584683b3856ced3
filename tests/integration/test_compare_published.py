"""Publishing without triggers on the whole way: a query beside a table, a policy, and `eventlog verify` of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.cli.main import exit_code
from eventlog.sql.error_codes import NAME_NEEDS_SCHEMA
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


NOWHERE = "SELECT buyer, sum(pay) AS total FROM orders GROUP BY buyer"
OUR_FUNCTION = "SELECT buyer, taxed(sum(pay)) AS total FROM public.orders GROUP BY buyer"
MISSPELLED = "SELECT buyer, sum(pay) AS total FROM public.order GROUP BY buyer"


@pytest.mark.parametrize("command", [("check",), ("run", "--until-empty")], ids=["check", "run"])
@pytest.mark.parametrize(
    "query, name, is_bare",
    [(NOWHERE, "orders", True), (OUR_FUNCTION, "taxed", True), (MISSPELLED, "public.order", False)],
    ids=["a table", "a function", "a schema and no such table"],
)
def test_a_query_whose_names_lack_a_schema_is_refused_with_the_reason(
    postgresql: Engine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    query: str,
    name: str,
    is_bare: bool,
    command: tuple[str, ...],
) -> None:
    """Sessions look nowhere but in the server's own schema, where nobody puts a table in the place of another."""
    with postgresql.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE orders (id integer PRIMARY KEY, buyer integer, pay integer, note text)"
        )
        connection.exec_driver_sql("INSERT INTO orders VALUES (1, 1, 7, 'y')")
        connection.exec_driver_sql("CREATE FUNCTION taxed(bigint) RETURNS bigint LANGUAGE sql RETURN $1 * 2")
    file = tmp_path / "eventlog.toml"
    settings = CONFIG.format(source=url_of(postgresql), folder=tmp_path)
    usual = next(line for line in settings.splitlines() if line.startswith("sql = "))
    file.write_text(settings.replace(usual, f'sql = "{query}"'))
    assert exit_code([*command, "--config", str(file)]) != 0
    told = "".join(capsys.readouterr())
    assert name in told
    assert (NAME_NEEDS_SCHEMA in told) is is_bare
    # With its schema it goes.
    mended = query.replace("FROM orders", "FROM public.orders").replace("taxed", "public.taxed")
    file.write_text(settings.replace(usual, f'sql = "{mended.replace("public.order ", "public.orders ")}"'))
    assert exit_code([*command, "--config", str(file)]) == 0, "".join(capsys.readouterr())
