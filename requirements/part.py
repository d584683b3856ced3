"""Prints the part of the lock that an image or a set of tests needs, hashes and all: for what `pip install --require-hashes` takes.

    python requirements/part.py eventlog-cdc postgres,web   the program with these extras
    python requirements/part.py build                       what it is built with
    python requirements/part.py eventlog-cdc quick          what the quick tests need

The lock says of each package for whom it is there. Law: what is asked for and all that it needs is in the part; pip
refuses to install anything that is not.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OURSELVES = "eventlog-cdc"

_pinned = re.compile(r"^([\w.-]+)==", re.MULTILINE)
_for_whom = re.compile(r"^    #(?: +via)? +([\w.-]+)(?: |$)", re.MULTILINE)
_required = re.compile(r"([\w.-]+)(?:\[([\w,-]+)\])?").match


def part(pyproject: str, lock: str, asked: Iterable[str]) -> str:
    """The requirements of what is asked for: the program itself, its extras, or a group."""
    # Each package of the lock: its name, for whom it is there, and its lines.
    entries: list[tuple[str, set[str], str]] = []
    begins = [match.start() for match in _pinned.finditer(lock)]
    for begin, end in zip(begins, [*begins[1:], len(lock)], strict=True):
        text = lock[begin:end]
        name = _pinned.match(text)
        assert name is not None, "an entry begins with its name"
        entries.append((_plain(name[1]), {_plain(user) for user in _for_whom.findall(text)} - {OURSELVES}, text))
    wanted = set(_roots(tomllib.loads(pyproject), asked))
    missing = wanted - {name for name, _, _ in entries}
    if missing:
        raise LookupError(f"requirements/dev.txt does not hold {', '.join(sorted(missing))}; run ./dev lock.")
    while found := {name for name, users, _ in entries if name not in wanted and wanted & users}:
        wanted |= found
    return "".join(text for name, _, text in entries if name in wanted)


def _roots(file: Mapping[str, Any], asked: Iterable[str]) -> Iterator[str]:
    project = file["project"]
    for name in asked:
        if name == OURSELVES:
            requirements = project["dependencies"]
        elif name in project["optional-dependencies"]:
            requirements = project["optional-dependencies"][name]
        elif name in file["dependency-groups"]:
            requirements = file["dependency-groups"][name]
        else:
            raise LookupError(f"There is no extra {name}; there are {', '.join(project['optional-dependencies'])}.")
        for requirement in requirements:
            if isinstance(requirement, dict):
                yield from _roots(file, [requirement["include-group"]])
                continue
            match = _required(requirement)
            assert match is not None, requirement
            if match[1] == OURSELVES:
                yield from _roots(file, match[2].split(","))
            else:
                yield _plain(match[1])


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(arguments: list[str]) -> int:
    """Prints the part; says what is wrong with the words that it was asked by."""
    asked = [name for words in arguments for name in words.split(",") if name]
    try:
        found = part((HERE.parent / "pyproject.toml").read_text(), (HERE / "dev.txt").read_text(), asked)
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 64
    print(found, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
