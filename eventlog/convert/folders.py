"""Folders that tasks of a conversion write into."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from eventlog.core.errors import SinkError
from eventlog.durable_files import PERMANENT

OUTCOMES_FILE: Final = "outcomes.parquet"


def list_outcome_files(path: Path) -> list[Path]:
    """List the files of outcomes: one, or those of a folder as Spark has it at an address."""
    if path.is_dir():
        return sorted(path.glob("part-*.parquet"))
    return [path]


def merge(source: Path, target: Path) -> None:
    """Move the files of a folder into another one, into folders of the same names."""
    for entry in sorted(source.iterdir()):
        there = target / entry.name
        if entry.is_dir():
            there.mkdir(exist_ok=True)
            merge(entry, there)
        else:
            entry.replace(there)
    source.rmdir()


def cannot_write(folder: Path, error: OSError) -> SinkError:
    """Make the error for a disk that refuses."""
    message = f"{folder} cannot be written: {error.strerror or error}."
    if error.errno in PERMANENT:
        hint = "Choose another folder, or correct that."
        return SinkError(message, hint=hint, may_pass=False)
    return SinkError(message, hint="The output is not complete; run it again.", may_pass=True)
