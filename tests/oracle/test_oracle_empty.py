"""Level oracle-translated, with Oracle's empty text: random statements are logged alike.

Both kinds of triggers are on the same tables. PostgreSQL's own have their judges in tests/conformance and
tests/integration. `EVENTLOG_HARDENING=70` asks for so many times as many statements.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.hardening.quantity import scaled
from tests.oracle.test_oracle_translated import REPEATED, USR, changed, fresh, put
from tests.support.logged import run

STATEMENTS: Final = 100
A_ROUND: Final = 20
THEIRS: Final = LogNames(table="oracle_log")
TEXTS: Final = ("", "a", "A", " x ", "'q\"\\+=,;<>", "{ü}\n\t", None)
NEW_USR: Final = "INSERT INTO usr VALUES (:idu, :code, :fname, :abbr, :shares, :born, :seen, :met, :photo)"
SERIES: Final = "generate_series(CAST(:idu AS int), 12, 3) AS n"
FIRST: Final = "(SELECT idu, code FROM usr ORDER BY idu LIMIT 1)"
WORK: Final = (
    *(NEW_USR,) * 4,
    f"INSERT INTO usr (idu, code, fname) SELECT n, :code, :fname FROM {SERIES}",
    "UPDATE usr SET fname = :fname WHERE idu >= :idu",
    "UPDATE usr SET fname = fname, abbr = :abbr, shares = :shares WHERE idu = :idu",
    "UPDATE usr SET born = :born, seen = :seen, met = :met WHERE idu < :idu",
    "UPDATE usr SET photo = CAST(:photo AS bytea), code = code WHERE idu = :idu",
    "UPDATE usr SET code = :code WHERE idu = :idu",
    "UPDATE usr SET idu = :other, fname = :fname WHERE idu = :idu AND idu <> :other",
    "UPDATE usr SET idu = idu + 50 WHERE idu BETWEEN :idu AND :idu + 4",
    "DELETE FROM usr WHERE idu = :idu",
    "DELETE FROM usr WHERE idu > 40",
    *("INSERT INTO usr_phone SELECT idu, code, :phoneno, :kind FROM usr WHERE idu = :idu",) * 4,
    "INSERT INTO usr_phone VALUES (NULL, :code, :phoneno, :kind)",
    "UPDATE usr_phone SET phoneno = :phoneno WHERE idu = :idu",
    "UPDATE usr_phone SET kind = :kind WHERE idu <= :idu",
    "UPDATE usr_phone SET idu = NULL WHERE idu = :idu",
    f"UPDATE usr_phone SET (idu, code) = {FIRST} WHERE phoneno = :phoneno",
    *("DELETE FROM usr_phone WHERE idu = :idu",) * 2,
    "DELETE FROM usr_phone WHERE idu IS NULL OR idu > 40",
)


@pytest.fixture
def empty(database: Engine) -> Engine:
    """Two logs, and tables in which no text is empty."""
    with database.begin() as connection:
        connection.exec_driver_sql(Path(__file__).with_name("empty.sql").read_text())
    install(database, THEIRS)
    fresh(database)
    for table in ("usr", "usr_phone"):
        run(
            database,
            f"CREATE TRIGGER a_first BEFORE INSERT OR UPDATE ON {table}"
            " FOR EACH ROW EXECUTE FUNCTION shims.without_empty()",
        )
    return database


def values(chance: Random) -> dict[str, Any]:
    moment = f"2025-0{chance.randint(1, 9)}-11 10:57:19"
    return {
        "idu": chance.randint(1, 12),
        "other": chance.randint(1, 14),
        **{name: chance.choice(TEXTS) for name in ("code", "fname", "phoneno")},
        "abbr": chance.choice(("ab", "b  ", "a'\"", None)),
        "kind": chance.choice(("home", "", "work")),
        "shares": chance.choice(("0.5", "-0.25", "120000", "7", None)),
        "born": chance.choice((moment, None)),
        "seen": chance.choice((f"{moment}.25", f"{moment}.000001", None)),
        "met": chance.choice((f"{moment}.5+03", f"{moment}-0330", None)),
        "photo": chance.choice((b"", b"\xaa", b"\xbb" * 100, None)),
    }


@pytest.mark.in_turn
@pytest.mark.parametrize("when", [None, "shares IS NULL OR shares < 1000"])
@pytest.mark.parametrize("style", list(Style))
def test_random_statements_are_logged_alike(
    empty: Engine,
    tmp_path: Path,
    style: Style,
    when: str | None,
) -> None:
    options = TriggerOptions(style=style, when=when)
    track(empty, ["usr"], replace(options, rows=True))
    put(empty, tmp_path, USR, replace(options, repeated=REPEATED), THEIRS)
    chance, kinds, done = Random(38), Counter[int](), 0
    for _ in range(scaled(STATEMENTS) // A_ROUND):
        for _ in range(A_ROUND):
            with suppress(DBAPIError), empty.begin() as connection:
                connection.execute(text(chance.choice(WORK)), values(chance))
                done += 1
        expected = changed(empty, ())
        assert changed(empty, (), THEIRS.table) == expected
        kinds.update(row[0] for row in expected)
    assert done > scaled(STATEMENTS) // 2
    assert sum(kinds.values()) > STATEMENTS // 4, kinds


def test_the_empty_text_is_oracles(empty: Engine) -> None:
    asked = "SELECT 'a' || NULL, NULL || 'b', rtrim('  '), replace('a', 'a', NULL)"
    run(empty, "INSERT INTO usr VALUES (1, 'a', '', NULL, NULL, NULL, NULL, NULL, '')")
    with empty.connect() as connection:
        assert tuple(connection.exec_driver_sql(asked).one()) == ("a", "b", None, None)
        assert connection.exec_driver_sql("SELECT fname, photo FROM usr").one() == (None, None)
