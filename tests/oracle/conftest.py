"""What tests of Oracle without a server need: a grammar, and a database for translated triggers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from tests.oracle import ora2pg
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


@pytest.fixture
def database(postgresql: Engine) -> Engine:
    """A database with a log that understands translated triggers."""
    why = ora2pg.missing(postgresql)
    if why:
        absent("oracle-translated", why)
    ora2pg.prepare(postgresql)
    install(postgresql)
    return postgresql
