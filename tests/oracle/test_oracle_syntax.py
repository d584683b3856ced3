"""Level oracle-syntax: every statement generated for Oracle passes a PL/SQL grammar, and broken ones do not.

No server has run them here: a grammar says that Oracle would read a statement, and nothing about names or results.
"""

from __future__ import annotations

import random
from functools import cache
from zlib import crc32

import pytest

from tests.oracle.generated import installation, loads, queries, statements, triggers
from tests.oracle.grammar import Grammar
from tests.oracle.mutants import mutants
from tests.support.daily import of_today

pytestmark = pytest.mark.xdist_group("oracle-syntax")  # one Java process, not one for each worker
SOURCES = {"installation": installation, "queries": queries, "triggers": triggers, "loads": loads}
MUTANTS = 10
"""Broken versions of each statement; there are some hundred statements, so every kind of breakage comes up often."""


@cache
def everything(kind: str) -> dict[str, str]:
    """Statements of a kind, each text once, with a name for it."""
    return {text: name for name, text in SOURCES[kind]()}


@pytest.mark.parametrize("kind", SOURCES)
def test_what_is_generated_is_what_oracle_reads(grammar: Grammar, kind: str) -> None:
    assert len(everything(kind)) > 10
    texts = {crc32(text.encode()): (name, text) for text, name in everything(kind).items()}
    complaints = [(name, grammar.complaint(text), text) for name, text in map(texts.__getitem__, of_today([*texts]))]
    assert [complaint for complaint in complaints if complaint[1]] == []


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", SOURCES)
def test_the_checker_refuses_every_broken_statement(grammar: Grammar, kind: str) -> None:
    chance = random.Random(20251120)
    tried, passed = 0, []
    for text, name in everything(kind).items():
        broken = list(mutants(text))
        for what, mutant in chance.sample(broken, min(MUTANTS, len(broken))):
            tried += 1
            if grammar.complaint(mutant) is None:
                passed.append(f"{name}, {what}:\n{mutant}")
    assert tried > 100
    assert passed == []


def test_every_kind_of_breakage_is_tried() -> None:
    texts = [text for kind in SOURCES for text in everything(kind)]
    assert len({what for text in texts for what, _ in mutants(text)}) == 15


def test_a_script_is_parted_where_sqlplus_runs_it() -> None:
    script = "SET DEFINE OFF\n\n-- words\nSELECT 1 / 2\nFROM dual\n/\n\nBEGIN\n  NULL;\nEND;\n/\n"
    assert statements(script) == ["SELECT 1 / 2\nFROM dual", "BEGIN\n  NULL;\nEND;"]


def test_no_line_is_longer_than_sqlplus_takes() -> None:
    named = [one for kind in SOURCES for one in everything(kind).items()]
    assert [name for text, name in named if max(map(len, text.splitlines())) > 2499] == []
