"""The next version of a log, which nobody has written yet, comes and goes while rows wait; programs refuse another one than theirs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Engine, event, inspect
from sqlalchemy.exc import PendingRollbackError

from eventlog.capture.install import find_migration, install, uninstall, upgrade, upgrade_sql
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states
from eventlog.check.examine import check
from eventlog.check.point import PointLevel
from eventlog.cli.main import exit_code
from eventlog.core.errors import EX_USAGE, OK, InstallError, UsageError
from eventlog.sql.findlog import log_columns
from eventlog.sql.names import NEWEST_MIGRATION, LogNames
from tests.conformance.cases import FIELDS
from tests.integration.publishing import config_of, publish_all
from tests.support.logged import USR, left_by, logged, run

MIGRATIONS = Path(__file__).parents[2] / "eventlog" / "capture" / "migrations"
NEXT: Final = '''
"""One table more with the numbers of rows that wait, and one column more; what is there already stays."""

import sqlalchemy as sa
from alembic import context, op

revision, down_revision = "0002", "0001"


def found(names):
    if context.is_offline_mode():
        return set(), set()
    looked = sa.inspect(op.get_bind())
    columns = {one["name"] for one in looked.get_columns(names.history, schema=names.schema)}
    return {*looked.get_table_names(schema=names.schema)}, columns


def upgrade():
    names = context.config.attributes["names"]
    tables, columns = found(names)
    if "event_log_more" not in tables:
        op.create_table("event_log_more", sa.Column("number", sa.Integer()), schema=names.schema)
    if "more" not in columns:
        op.add_column(names.history, sa.Column("more", sa.String(9), server_default="much"), schema=names.schema)
    place = f"{names.schema}." if names.schema else ""
    op.execute(f"DELETE FROM {place}event_log_more")
    op.execute(f"INSERT INTO {place}event_log_more SELECT record_id FROM {place}event_log WHERE status = 'N'")


def downgrade():
    names = context.config.attributes["names"]
    tables, columns = found(names)
    if context.is_offline_mode() or "event_log_more" in tables:
        op.drop_table("event_log_more", schema=names.schema)
    if context.is_offline_mode() or "more" in columns:
        op.drop_column(names.history, "more", schema=names.schema)
'''


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    """Make the next program's folder of migrations."""
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder)
    (folder / "versions" / "0002_more.py").write_text(NEXT)
    return folder


@contextmanager
def next_program(migrations: Path) -> Iterator[None]:
    """We are the next program while the block runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eventlog.capture.install.MIGRATIONS", str(migrations))
        for module in ("eventlog.capture.install", "eventlog.sql.names"):
            patch.setattr(f"{module}.NEWEST_MIGRATION", "0002")
        yield


@pytest.fixture
def usr(engine: Engine) -> Engine:
    """Make a log with a waiting row."""
    install(engine)
    run(engine, *USR)
    track(engine, ["usr"], FIELDS)
    run(engine, "INSERT INTO usr VALUES (1, 'a', 'b', 3)")
    return engine


def rows_of(engine: Engine, table: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(f"SELECT * FROM {table} ORDER BY 1")]


def statuses(engine: Engine) -> set[object]:
    with engine.connect() as connection:
        return {letter for (letter,) in connection.exec_driver_sql("SELECT status FROM event_log")}


def test_it_goes_up_and_down_with_rows_that_wait_and_both_programs_publish(
    usr: Engine, migrations: Path, tmp_path: Path
) -> None:
    waiting = logged(usr)
    config = config_of(usr, tmp_path / "out")
    with next_program(migrations):
        with pytest.raises(InstallError, match=r"is at migration 0001; eventlog .* needs 0002\.") as refused:
            publish_all(config)
        assert "`eventlog upgrade`" in str(refused.value.hint)
        assert any("needs 0002" in point.said for point in check(lambda: config) if point.level is PointLevel.FAILURE)
        upgrade(usr)
        assert find_migration(usr, LogNames()) == "0002"
        assert logged(usr) == waiting != []
        assert len(rows_of(usr, "event_log_more")) == len(waiting)
        assert {one.state for one in trigger_states(usr)} == {TriggerCondition.CURRENT}
        publish_all(config)
        assert statuses(usr) == {"S"}
        assert left_by(usr, "DELETE FROM usr") == [(4, "idu=1", None, None, None)]
    with pytest.raises(InstallError, match=r"is at migration 0002; eventlog .* knows those up to 0001"):
        publish_all(config)
    assert statuses(usr) == {"N"}
    with next_program(migrations):
        upgrade(usr, to="0001")
    publish_all(config)
    assert statuses(usr) == {"S"}
    assert not inspect(usr).has_table("event_log_more")
    uninstall(usr)
    assert sorted(inspect(usr).get_table_names()) == ["usr", "usr_phone"]


def test_what_it_prints_does_the_same(usr: Engine, migrations: Path) -> None:
    with next_program(migrations):
        assert "CREATE" not in upgrade_sql(usr, to="0001")
        for way, after in (("0002", True), ("0001", False)):
            bare = re.sub(r"^(--.*|BEGIN;|COMMIT;)$", "", upgrade_sql(usr, to=way), flags=re.MULTILINE)
            run(usr, *(part for part in re.split(r";\s*\n", bare) if part.strip()))
            assert find_migration(usr, LogNames()) == way
            assert inspect(usr).has_table("event_log_more") is after


class KilledError(BaseException):
    """The process dies."""


@pytest.mark.parametrize("to", ["0002", "0001"])
def test_one_that_is_killed_at_any_statement_can_be_run_again(usr: Engine, migrations: Path, to: str) -> None:
    waiting, seen, last = logged(usr), 0, 0

    def die(*_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == last:
            raise KilledError

    with next_program(migrations):
        upgrade(usr, to="0002" if to == "0001" else "0001")
        event.listen(usr, "before_cursor_execute", die)
        while last <= seen:
            last, seen = last + 1, 0
            # The second where the session cannot be set back either.
            with suppress(KilledError, PendingRollbackError):
                upgrade(usr, to=to)
        event.remove(usr, "before_cursor_execute", die)
        assert last > 5
        assert find_migration(usr, LogNames()) == to
        assert inspect(usr).has_table("event_log_more") is (to == "0002")
    assert logged(usr) == waiting


def test_installing_brings_an_older_log_up(usr: Engine, migrations: Path) -> None:
    with next_program(migrations):
        install(usr)
        assert find_migration(usr, LogNames()) == "0002"
        uninstall(usr, purge=True)


def test_to_go_back_is_asked_for_and_said(
    sqlite: Engine, migrations: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    back = ["upgrade", "--to", "0001", "--database", str(sqlite.url)]
    with next_program(migrations):
        install(sqlite)
        assert exit_code(back) == EX_USAGE
        assert "use --yes" in capsys.readouterr().err
        assert exit_code([*back, "--dry-run"]) == OK
        assert "The log would move from migration 0002 to 0001." in capsys.readouterr().out
        assert find_migration(sqlite, LogNames()) == "0002"
        assert exit_code([*back, "--yes"]) == OK
        assert find_migration(sqlite, LogNames()) == "0001"


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


def test_a_new_log_is_made_by_one_migration_alone() -> None:
    """No version was given out before; whoever begins loads and runs this file and no other."""
    assert [path.name for path in MIGRATIONS.glob("versions/*.py")] == [f"{NEWEST_MIGRATION}_log.py"]
