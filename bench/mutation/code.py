"""Mutants of Python, by mutmut: in a copy of the project, each in a process that was forked when everything was imported."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir
from itertools import chain
from pathlib import Path

from bench.mutation.areas import Area, files_of
from bench.mutation.report import End, Mutant

SHOWN = 4000
"""So many characters of what mutmut says are shown when it fails."""
COPIED = (
    *("eventlog", "tests", "docs", "bench", "spark", "streams_tools"),
    *("pyproject.toml", "README.md", "CONTRIBUTING.md", "dev"),
)
KILLED = (1, 2, 3)
"""What pytest ends with when a test fails, the tests cannot be collected, or pytest itself stumbles over the fault."""
SLOW = (-24, 24, 36, 152)
"""Ended by the limit of time, which is fifteen times what the tests need: the fault makes something go on for ever."""
UNREACHED = (5, 33)
"""No test comes to the changed code."""


def mutants_of(area: Area, files: Sequence[str], most: int, place: Path, jobs: int) -> tuple[int, list[Mutant]]:
    """How many mutants there are, and those that were tried: all, or so many at even distances."""
    _stage(area, files, place)
    with chdir(place):
        names = _names(files)
    tried = names if most <= 0 else evenly(names, most)
    program = [sys.executable, "-m", "mutmut", "run", "--max-children", str(jobs), *tried]
    ended = subprocess.run(program, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    codes = _exit_codes(place)
    if ended.returncode or not all(name in codes for name in tried):
        sys.exit(f"mutmut did not come to its end. The last that it said:\n{ended.stdout[-SHOWN:]}")
    with chdir(place):
        return len(names), [_mutant(name, codes[name]) for name in tried]


def evenly(names: Sequence[str], most: int) -> list[str]:
    """So many of them, at even distances."""
    if len(names) <= most:
        return list(names)
    return [names[number * len(names) // most] for number in range(most)]


def _stage(area: Area, files: Sequence[str], place: Path) -> None:
    """A copy of what git knows, with the settings for this run."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *COPIED],
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if Path(name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(name, place / name)
    lists = {
        "source_paths": ["eventlog"],
        "only_mutate": files,
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "-p", "bench.mutation.fresh", *_options(area)],
        "pytest_add_cli_args_test_selection": files_of(area.tests),
        "also_copy": [name for name in COPIED if name not in ("eventlog", "tests", "pyproject.toml")],
    }
    written = chain.from_iterable((f"{name}=", *(f"    {value}" for value in values)) for name, values in lists.items())
    (place / "setup.cfg").write_text("\n".join(["[mutmut]", "use_git_change_detection=false", *written, ""]))


def _options(area: Area) -> list[str]:
    return [f"-k{value}" if before == "-k" else value for before, value in _pairs(area.options) if value != "-k"]


def _pairs(values: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(["", *values], values, strict=False))


def _names(files: Sequence[str]) -> list[str]:
    """The mutants of the files as mutmut calls them."""
    from mutmut.mutation.file_mutation import mutate_file_contents

    found: list[str] = []
    for file in files:
        module = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        found += [f"{module}.{name}" for name in mutate_file_contents(file, Path(file).read_text()).mutant_names]
    return found


def _exit_codes(place: Path) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for file in (place / "mutants").rglob("*.meta"):
        said = json.loads(file.read_text())["exit_code_by_key"]
        found |= {name.replace("__init__.", ""): code for name, code in said.items()}
    return found


def _mutant(name: str, code: int | None) -> Mutant:
    """What became of the mutant, and what it changes unless a test noticed it."""
    file = _file(name)
    if code in KILLED or code in SLOW:
        return Mutant(file=file, removed="", added="", end="killed" if code in KILLED else "slow")
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    lines = get_diff_for_mutant(name, path=file).splitlines()
    removed = [line[1:].strip() for line in lines if line.startswith("-") and not line.startswith("---")]
    added = [line[1:].strip() for line in lines if line.startswith("+") and not line.startswith("+++")]
    end: End = "survived" if code == 0 else "unreached" if code in UNREACHED else "unknown"
    return Mutant(file=file, removed="\n".join(removed), added="\n".join(added), end=end)


def _file(name: str) -> str:
    """The file of a mutant: a module, or what a package says of itself."""
    module = name.rpartition(".")[0].replace(".", "/")
    return f"{module}.py" if Path(f"{module}.py").exists() else f"{module}/__init__.py"
