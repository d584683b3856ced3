"""What tests of Oracle without a server need: the PL/SQL grammar."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracle.grammar import Grammar, grammar_jars, missing
from tests.support.servers import absent


@pytest.fixture(scope="session")
def grammar() -> Iterator[Grammar]:
    """The checker of PL/SQL syntax."""
    why = missing()
    if why:
        absent("oracle-syntax", why)
    checker = Grammar(grammar_jars())
    yield checker
    checker.close()
