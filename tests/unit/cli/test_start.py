"""What a person waits for: help and completion load every command, and no database, server or document library."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "sqlalchemy",
    "alembic",
    "lxml",
    "pyarrow",
    "pyspark",
    "confluent_kafka",
    "uvicorn",
    "starlette",
    "jinja2",
    "asyncio",
}
SHOW = """
import sys
from eventlog.cli.main import exit_code
exit_code(sys.argv[1:])
sys.stderr.write(" ".join(sys.modules))
"""


@pytest.mark.parametrize("arguments", [["--help"], ["convert", "--help"], ["track", "--help"]], ids=" ".join)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    said = subprocess.run([sys.executable, "-c", SHOW, *arguments], capture_output=True, text=True, check=True)
    assert "Example" in said.stdout or "Commands" in said.stdout or "To begin" in said.stdout
    assert {name for name in said.stderr.split() if name in HEAVY} == set()
