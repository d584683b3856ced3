"""A log of the first released schema is brought up with its rows and its triggers, goes back, and newer ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect

from eventlog.capture import TriggerCondition, track, trigger_states
from eventlog.capture.install import install, install_sql, revisions, uninstall, upgrade, upgrade_sql
from eventlog.capture.installed import history
from eventlog.check.indexes import newest_points
from eventlog.core.errors import InstallError, UsageError
from eventlog.sql.dialect import dialect_of
from eventlog.sql.findlog import log_columns
from eventlog.sql.names import NEWEST_MIGRATION, LogNames
from tests.support.logged import USR, left_by, logged, run

RELEASED = Path(__file__).parents[1] / "corpora" / "installed"
"""What `install --sql` printed at a migration, as it was released; a file of it is never changed again."""

MIGRATIONS = Path(__file__).parents[2] / "eventlog" / "capture" / "migrations" / "versions"


@pytest.fixture
def first(engine: Engine) -> Engine:
    """A database with a log as the first release made it, a row that waits, and a mark."""
    script = (RELEASED / f"0001-{dialect_of(engine).name}.sql").read_text()
    parts = [part for part in script.split(";\n") if any(line and line[:2] != "--" for line in part.splitlines())]
    run(engine, *(part for part in parts if part.strip() not in ("BEGIN", "COMMIT")))
    run(engine, *USR)
    track(engine, ["usr"])
    run(engine, "INSERT INTO usr VALUES (1, 'a', 'b', 3)", "INSERT INTO event_log_mark VALUES ('log', 'this one')")
    return engine


def test_the_first_released_log_is_brought_up_with_all_that_it_holds(first: Engine) -> None:
    before = logged(first)
    assert revisions(first, LogNames()) == ("0001", NEWEST_MIGRATION)
    assert "event_log_schema" in upgrade_sql(first)
    upgrade(first)
    assert revisions(first, LogNames()) == (NEWEST_MIGRATION, NEWEST_MIGRATION)
    assert logged(first) == before != []
    assert {one.state for one in trigger_states(first)} == {TriggerCondition.CURRENT}
    assert left_by(first, "DELETE FROM usr") == [(4, "idu=1", None, None, None)]
    assert history(first, LogNames()) == []


def test_it_goes_back_to_what_a_former_program_knows_and_up_again(first: Engine) -> None:
    upgrade(first)
    with pytest.raises(InstallError, match="no script can do that"):  # the journal has places of outputs
        upgrade_sql(first, to="0001")
    upgrade(first, to="0006")
    assert "DROP TABLE event_log_schema" in upgrade_sql(first, to="0001")
    upgrade(first, to="0001")
    assert revisions(first, LogNames())[0] == "0001"
    assert not inspect(first).has_table("event_log_schema")
    upgrade(first)
    uninstall(first, purge=True)
    assert inspect(first).get_table_names() in (["usr", "usr_phone"], ["usr_phone", "usr"])


@pytest.mark.parametrize("rows", [100_000, 100_001])
def test_a_log_is_indexed_anew_unless_it_is_so_large_that_writers_would_wait(postgresql: Engine, rows: int) -> None:
    install(postgresql)
    upgrade(postgresql, to="0003")
    assert [one["name"] for one in inspect(postgresql).get_indexes("event_log")] == ["event_log_new"]
    many = f"SELECT 'idu=1', 'S', 4, 'usr' FROM generate_series(1, {rows})"
    run(postgresql, f"INSERT INTO event_log (table_key, status, event_type, table_name) {many}")
    upgrade(postgresql)
    indexes = {str(one["name"]) for one in inspect(postgresql).get_indexes("event_log")}
    assert ("event_log_done" in indexes) is (rows == 100_000)
    assert [point.name for point in newest_points(postgresql, LogNames())] == ["newest rows"] * (rows > 100_000)


@pytest.mark.parametrize("to", ["0000", "0099", "base", "head", "1"])
def test_a_migration_that_does_not_exist_is_refused(sqlite: Engine, to: str) -> None:
    install(sqlite)
    with pytest.raises(UsageError, match=f"no migration {to}"):
        upgrade(sqlite, to=to)


def test_a_log_of_a_newer_program_is_refused_whatever_is_asked_of_it(engine: Engine) -> None:
    install(engine)
    run(engine, *USR, "UPDATE event_log_version SET version_num = '0999'")
    for act in (install, upgrade, upgrade_sql, uninstall, trigger_states):
        with pytest.raises(InstallError, match=r"is at migration 0999; eventlog .* knows those up to") as refused:
            act(engine)
        assert "eventlog upgrade --to" in str(refused.value.hint)
    with pytest.raises(InstallError, match="0999"):
        log_columns(engine, LogNames())


def test_the_newest_migration_is_the_one_that_the_names_say() -> None:
    files = sorted(path.name for path in MIGRATIONS.glob("0*.py"))
    later = [name for name in files if name[: len(NEWEST_MIGRATION)] > NEWEST_MIGRATION]
    assert any(name.startswith(f"{NEWEST_MIGRATION}_") for name in files)
    assert later in ([], ["0007_journal_moves.py"]), "it waits for the publisher that works with the journal"


@pytest.mark.parametrize("database", ["sqlite", "postgresql", "mysql", "oracle"])
def test_what_was_released_is_still_what_a_new_log_begins_with(database: str) -> None:
    """A migration that was released is never changed: who has run it would have another log than who runs it now."""
    url = "mariadb://" if database == "mysql" else f"{database}://"
    released = (RELEASED / f"0001-{database}.sql").read_text()
    statements = [part.strip() for part in released.split("\n\n") if part.startswith("CREATE")]
    now = install_sql(url).replace("''", "'")  # a text in a block that may run twice
    assert [one for one in statements if one not in now] == []
