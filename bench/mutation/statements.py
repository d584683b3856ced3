"""Mutants of the SQL that triggers are made of: a word of it is another one, or a condition is gone."""

from __future__ import annotations

import io
import os
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from math import ceil
from pathlib import Path
from time import monotonic

import pytest

from bench.mutation.areas import Area, files_of
from bench.mutation.code import evenly
from bench.mutation.report import End, Mutant
from eventlog.sql import dialect

SWAPS = {
    "AND": "OR",
    "OR": "AND",
    "=": "<>",
    "<>": "=",
    "<": "<=",
    ">": ">=",
    "IS": "IS NOT",
    "IS NOT": "IS",
    "GLOB": "NOT GLOB",
    "NOT GLOB": "GLOB",
    "EXISTS": "NOT EXISTS",
    "AFTER": "BEFORE",
    "THEN": "THEN NULL AND",
    "old_value": "new_value",
    "new_value": "old_value",
}
MORE = 15
"""So many times as long as the tests need without a fault they may take with one."""
_word = re.compile(
    r"/\*.*?\*/(?:'(?:[^']|'')*'|[\w.]+|\([^()]*\))?|'(?:[^']|'')*'|\b(?:IS NOT|NOT GLOB|[A-Za-z_]\w*)\b|<>|[=<>]|\b\d+\b"
)
"""Holes with their samples, texts and words: only the last are changed."""


def mutants_of(area: Area, files: Sequence[str], most: int) -> tuple[int, list[Mutant]]:
    """How many mutants there are, and those that were tried: all, or so many at even distances."""
    arguments = ["-x", "-q", "-p", "no:cacheprovider", *area.options, *files_of(area.tests)]
    with redirect_stdout(io.StringIO()):
        pytest.main(["--collect-only", *arguments])  # what is imported here, no mutant has to import
    began = monotonic()
    if _exit_code(arguments, None, 0) != 0:
        raise SystemExit("The tests fail without any mutant.")
    seconds = ceil((monotonic() - began + 1) * MORE)
    made = [(file, *one) for file in files for one in every(Path(file).read_text())]
    tried = [made[int(number)] for number in evenly([str(number) for number in range(len(made))], most or len(made))]
    return len(made), [_judged(arguments, one, seconds) for one in tried]


def _judged(arguments: list[str], made: tuple[str, str, str, str], seconds: int) -> Mutant:
    file, name, text, changed = made
    code = _exit_code(arguments, (file, name, changed), seconds)
    end: End = "survived" if code == 0 else "slow" if code == -signal.SIGALRM else "killed"
    return Mutant(file=file, removed=text, added=changed, end=end)


def every(sql: str) -> Iterator[tuple[str, str, str]]:
    """Each query's name and text, and the text with one fault."""
    for name, text in dialect.split(sql):
        for match in _word.finditer(text):
            instead = _instead(match[0])
            if instead is not None:
                yield name, text, text[: match.start()] + instead + text[match.end() :]


def _instead(word: str) -> str | None:
    if word.isdigit():
        return str(int(word) + 1)
    return SWAPS.get(word)


def _exit_code(arguments: list[str], fault: tuple[str, str, str] | None, seconds: int) -> int:
    """How the tests end with the fault, in a process of their own that has imported everything already; 0 has no limit."""
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        if fault is not None:
            file, name, changed = fault
            dialect.texts(dialect.dialect_of(f"{Path(file).parent.name}://"))[name] = changed
        os._exit(pytest.main(arguments))
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
