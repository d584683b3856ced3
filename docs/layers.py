"""Write the table of layers into eventlog/README.md, from the import contract and from what each folder says of itself."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "eventlog" / "README.md"
BEGIN: Final = "<!-- layers: written by docs/generate.py from pyproject.toml and the docstrings of the folders -->\n"
END: Final = "<!-- end of the layers -->\n"


def page_with_layers() -> str:
    """Return eventlog/README.md with its table as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def table() -> str:
    """A row for each folder and module of the package, from the top of the contract to its bottom."""
    names = [name for floor in _floors() for name in floor]
    rows = [f"| `{name}` | {_purpose(name)} | {', '.join(_inside(name))} |" for name in names]
    return "\n".join(["| layer | is | holds |", "| --- | --- | --- |", *rows, ""])


def _floors() -> Iterator[list[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    for floor in layers:
        yield re.findall(r"\w+", floor)


def _purpose(name: str) -> str:
    """The first sentence of a folder or a module."""
    package = ROOT / "eventlog" / name / "__init__.py"
    file = package if package.exists() else package.parent.with_suffix(".py")
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return said.partition("\n\n")[0].replace("\n", " ")


def _inside(name: str) -> list[str]:
    """Folders first, then modules."""
    folder = ROOT / "eventlog" / name
    packages = sorted(f"`{file.parent.name}/`" for file in folder.glob("*/__init__.py"))
    modules = sorted(f"`{file.stem}`" for file in folder.glob("*.py") if file.stem != "__init__")
    return [*packages, *modules]
