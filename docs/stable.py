"""The names of the Python API that are stable, from the modules that offer them: the second half of docs/reference/api.md."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "reference" / "api.md"
BEGIN: Final = "<!-- names: written by docs/generate.py from __all__ of the modules -->\n"
END: Final = "<!-- end of the names -->\n"
STABLE: Final = ("eventlog", "eventlog.plugins", "eventlog.testing")
"""Modules whose names keep their meaning; pages import nothing else, but what Spark's page shows."""

SPARK: Final = "eventlog_spark"
"""A module that is stable as the page about it shows it."""


def page_with_names() -> str:
    """The page with its names as they are now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n" + "\n".join(_sections()) + f"\n{END}{after}"


def names_of(module: str) -> list[str]:
    """What a module offers: classes and functions, in the order of their names."""
    offered = import_module(module)
    return sorted(name for name in offered.__all__ if getattr(getattr(offered, name), "__doc__", None) is not None)


def _sections() -> Iterator[str]:
    for module in STABLE:
        names = [name for name in names_of(module) if name not in ("ABSENT", "__version__")]
        own = [name for name in names if module != "eventlog.plugins" or name not in names_of("eventlog")]
        yield f"## `{module}`\n"
        yield f"::: {module}\n    options:\n      members: [{', '.join(own)}]\n"
