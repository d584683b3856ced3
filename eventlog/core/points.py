"""The entry points of installed packages: a command that looks for one word starts a fifth sooner than with importlib.metadata,
which loads what reads mails and archives.

Law: what is found is what importlib.metadata finds; a test compares them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from glob import escape, glob
from importlib import import_module
from typing import Any, Final

from msgspec import Struct

Read = Callable[[str], str | None]

FILE: Final = "entry_points.txt"
ABOUT: Final = (".dist-info", ".egg-info")
"""How folders end that say something of a package."""


class OfferedValue(Struct, frozen=True, kw_only=True):
    """What a package offers under a name."""

    group: str
    name: str
    value: str
    """`module:attribute`."""
    package: str
    version: str

    @property
    def module(self) -> str:
        """Return the name of its module."""
        return self.value.partition(":")[0].strip()

    def load(self) -> Any:
        """Imports it."""
        found: Any = import_module(self.module)
        for name in filter(None, self.value.partition(":")[2].strip().split(".")):
            found = getattr(found, name)
        return found


def read_points() -> Iterator[OfferedValue]:
    """Read the offers of all packages on Python's path; of two copies the first counts."""
    known = set[str]()
    for place in sys.path:
        for about, read in _packages(place or "."):
            name = re.sub(r"[-_.]+", "-", about.removesuffix(".egg-info").partition("-")[0]).lower()
            if name not in known:
                known.add(name)
                yield from _points(read)


def _packages(place: str) -> Iterator[tuple[str, Read]]:
    """Find the packages in a folder or an archive: the name of each one's notes, and a reader of
    its files.
    """
    for path in sorted(path for end in ABOUT for path in glob(f"{escape(place)}/*{end}")):  # noqa: PTH207  # each command asks
        yield path.rpartition("/")[2], partial(_read, path)
    if _is_file(place):
        from importlib.metadata import distributions

        for one in distributions(path=[place]):
            yield one.name, one.read_text


def _is_file(place: str) -> bool:
    try:
        with open(place, "rb"):  # noqa: PTH123  # as above
            return True
    except OSError:
        return False


def _read(about: str, file: str) -> str | None:
    try:
        with open(f"{about}/{file}", encoding="utf-8") as opened:  # noqa: PTH123  # as above
            return opened.read()
    except OSError:
        return None


def _points(read: Read) -> Iterator[OfferedValue]:
    text = read(FILE) or ""
    if "[eventlog." not in text:
        return
    notes = read("METADATA") or read("PKG-INFO") or ""
    said = [re.search(rf"^{name}: *(.+)$", notes, re.MULTILINE) for name in ("Name", "Version")]
    package, version = [found[1].strip() if found else "unknown" for found in said]
    group = ""
    for line in map(str.strip, text.splitlines()):
        name, is_point, value = line.partition("=")
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif is_point and not line.startswith("#"):
            place = value.partition("[")[0].strip()  # behind it stand extras
            yield OfferedValue(group=group, name=name.strip(), value=place, package=package, version=version)
