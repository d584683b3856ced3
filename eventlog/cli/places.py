"""Files that commands read: as they are called, and standard input as `-`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

STDIN: Final = Path("/dev/stdin")


class ReadFile(click.Path):
    """The path of a file to read; `-` is standard input."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, allow_dash=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return STDIN if value == "-" else super().convert(value, param, ctx)
