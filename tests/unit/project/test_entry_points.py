"""Commands of other folders come in by entry points, as those of other packages do."""

from __future__ import annotations

import tomllib
from pathlib import Path

from eventlog.cli.main import COMMANDS, PLACES

PYPROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"


def test_every_command_of_the_help_is_the_cores_or_comes_in_by_an_entry_point() -> None:
    """A name without a place in `cli.main` is one of our entry points, and each has its section."""
    written = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"]["eventlog.commands"]
    assert {*COMMANDS} - PLACES.keys() == {name for name in written if "." not in name}
    groups = {name.partition(".")[0] for name in written if "." in name}
    assert groups <= PLACES.keys()
