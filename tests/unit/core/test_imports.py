"""Each module of the core may be the first that somebody imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import eventlog.core

PROGRAM = """
import importlib, sys
for module in sys.argv[1:]:
    for name in [name for name in sys.modules if name.partition(".")[0] == "eventlog"]:
        del sys.modules[name]
    importlib.import_module(module)
"""


def test_each_module_can_be_imported_first() -> None:
    folder = Path(eventlog.core.__file__).parent
    paths = [path.relative_to(folder.parents[1]).with_suffix("") for path in folder.rglob("*.py")]
    modules = [".".join(path.parts).removesuffix(".__init__") for path in sorted(paths)]
    assert len(modules) > 30
    tried = subprocess.run([sys.executable, "-c", PROGRAM, *modules], capture_output=True, text=True, check=False)
    assert tried.stderr == ""
