"""The command `eventlog`, begun from a module that nobody else has.

The package index knows a stranger as `eventlog`. Where its files stand in the place of ours, or before ours on Python's path,
our own modules cannot be asked what is wrong.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final, NoReturn

NAME: Final = "eventlog-cdc"
EX_CONFIG: Final = 78
INTERRUPTED: Final = 130


def run() -> NoReturn:
    """Runs the command. Who presses Ctrl-C while it is loaded, or after its last line, gets the usual sentence too."""
    try:
        _run()
    except KeyboardInterrupt:
        sys.stderr.write("\neventlog: interrupted.\n")
        sys.exit(INTERRUPTED)


def _run() -> NoReturn:
    """Runs the command; a sentence says where a stranger stands in its place."""
    found = import_module("eventlog")
    try:
        from eventlog.cli.main import run as command
        from eventlog.version import VERSION
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("eventlog."):
            raise
        _refuse(found)
    if getattr(found, "__version__", None) != VERSION:
        _refuse(found)
    command()


def _refuse(stranger: object) -> NoReturn:
    where = getattr(stranger, "__file__", None) or "somewhere on Python's path"
    sys.stderr.write(
        f"eventlog: The package eventlog of another project has replaced ours, at {where}."
        f" Uninstall both, and install this one again: pip uninstall eventlog {NAME}.\n"
    )
    sys.exit(EX_CONFIG)
