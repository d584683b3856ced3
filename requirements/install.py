"""Installs locked packages with pip and shows how far it is: pip itself says nothing for half a minute, or far too much.

It needs nothing but the standard library: python requirements/install.py COUNT PIP-ARGUMENTS… COUNT is how many packages the
environment holds in the end.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

EVERY_SECONDS = 5.0
"""How often it says how far it is where no terminal shows it."""


class Shown:
    """What is done now, said by a thread of its own: in one line of a terminal, else in a line now and then."""

    def __init__(self, count: int) -> None:
        self.doing = "asking the package index"
        self.installing = False
        self._count = count
        self._live = sys.stderr.isatty()
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Leaves the line."""
        self._over.set()
        self._thread.join()
        if self._live:
            sys.stderr.write("\r\x1b[K")

    def _watch(self) -> None:
        while not self._over.wait(0.5 if self._live else EVERY_SECONDS):
            if self.installing:
                self.doing = f"installing, {min(installed(), self._count)} of {self._count} packages are there"
            said = f"dev: {self.doing} ({time.monotonic() - self._began:.0f} s)"
            sys.stderr.write(f"\r\x1b[K{said}" if self._live else f"{said}\n")
            sys.stderr.flush()


def installed() -> int:
    """How many packages stand in this environment."""
    return len(list(Path(sysconfig.get_path("purelib")).glob("*.dist-info")))


def main(count: int, arguments: list[str]) -> int:
    """Runs pip; its exit code, and what it said on standard error."""
    shown, looked = Shown(count), 0
    words = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        *arguments,
        "--no-compile",  # Python compiles what is imported, which is a small part of what is installed
        "--progress-bar",
        "off",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            if found := re.match(r"(?:Collecting|Requirement already satisfied:) ([\w.-]+)", line):
                looked += 1
                shown.doing = f"fetching, package {min(looked, count)} of {count}: {found[1]}"
            elif "Building wheel for" in line:
                shown.doing = line.strip().partition(" (")[0].lower()
            shown.installing = line.startswith("Installing collected packages")
    shown.end()
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
