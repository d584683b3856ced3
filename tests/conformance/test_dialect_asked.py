"""What a table was tracked with is kept: by the log and by the triggers, and only believed where nobody else could have said it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Engine

from eventlog.capture import (
    Style,
    TrackRequest,
    TriggerCondition,
    TriggerOptions,
    track,
    track_sql,
    trigger_states,
    untrack,
)
from eventlog.capture.install import install
from eventlog.config.build import catalog_of
from eventlog.config.settings import Config
from eventlog.core.errors import InstallError, UsageError
from eventlog.core.model import RowId
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames
from eventlog.sql.rows import SqlRowReader
from tests.support.logged import USR, left_by, run

ASKED = TrackRequest(style=Style.FIELD, exclude=("lname",))


@pytest.fixture
def usr(engine: Engine) -> Engine:
    install(engine)
    run(engine, *USR)
    return engine


def asked(engine: Engine) -> set[str | None]:
    return {state.asked for state in trigger_states(engine)}


def conditions(engine: Engine) -> set[TriggerCondition]:
    return {state.state for state in trigger_states(engine)}


def without_triggers(engine: Engine, *statements: str) -> None:
    """Makes usr anew, as a migration does that copies a table: its triggers are gone."""
    run(engine, "DROP TABLE usr_phone", "DROP TABLE usr", *(statements or USR))


def test_tracking_again_keeps_what_was_asked(usr: Engine) -> None:
    phones = (
        "CREATE TABLE usr_phone (idu INTEGER NOT NULL, phoneno VARCHAR(40), FOREIGN KEY (idu) REFERENCES usr (idu))"
    )
    run(usr, "DROP TABLE usr_phone", phones)
    track(usr, ["usr"], ASKED)
    told: list[str] = []
    assert track_sql(usr, ["usr"]) == ""
    track(usr, ["usr"], note=told.append)
    assert asked(usr) == {"--events field --exclude lname"}
    assert [text.partition(", ")[2] for text in told if "as before" in text] == ["with --events field --exclude lname."]
    assert any("usr_phone may have the same value twice" in text for text in told), (
        "what should be known of it is said again"
    )
    assert left_by(usr, "INSERT INTO usr VALUES (1, 'a', 'secret', NULL)") == [(1, "idu=1", "fname", None, "a")]


def test_only_what_is_said_changes_and_the_change_is_told(usr: Engine) -> None:
    track(usr, ["usr"], TrackRequest(style=Style.FIELD, exclude=("lname",), when="age > 1"))
    told: list[str] = []
    track(usr, ["usr"], TrackRequest(exclude=("lname", "age"), when=""), note=told.append)
    assert asked(usr) == {"--events field --exclude lname,age"}
    assert "was tracked with --events field --exclude lname --when 'age > 1'; it is now" in told[0]
    track(usr, ["usr"], TrackRequest(exclude=()))
    assert asked(usr) == {"--events field"}


def test_a_column_that_was_left_out_and_has_another_name_now_is_not_published(usr: Engine) -> None:
    track(usr, ["usr"], ASKED)
    run(usr, "ALTER TABLE usr RENAME COLUMN lname TO family")
    with pytest.raises(UsageError, match=r"no column lname.*It was tracked with .*use --columns or --exclude again"):
        track(usr, ["usr"])
    with pytest.raises(UsageError) as said:
        track(usr, ["usr"], TrackRequest(exclude=("nope",)))
    assert "tracked with" not in str(said.value)
    track(usr, ["usr"], TrackRequest(exclude=("family",)))
    assert asked(usr) == {"--events field --exclude family"}


def test_reset_forgets(usr: Engine) -> None:
    track(usr, ["usr"], ASKED)
    track(usr, ["usr"], TrackRequest(reset=True))
    assert asked(usr) == {"--events row-back"}


def test_a_table_that_was_made_anew_is_missing_and_tracked_as_before(usr: Engine) -> None:
    track(usr, ["usr"], ASKED)
    without_triggers(usr)
    assert conditions(usr) == {TriggerCondition.MISSING}
    assert asked(usr) == {"--events field --exclude lname"}
    track(usr, ["usr"])
    assert conditions(usr) == {TriggerCondition.CURRENT}
    assert asked(usr) == {"--events field --exclude lname"}
    without_triggers(usr)
    assert untrack(usr, ["usr"]) == []
    assert trigger_states(usr) == []
    track(usr, ["usr"])
    assert asked(usr) == {"--events row-back"}


def test_who_may_not_write_marks_has_the_triggers_to_tell(usr: Engine) -> None:
    track(usr, ["usr"], ASKED)
    run(usr, "DELETE FROM event_log_mark")
    track(usr, ["usr"])
    assert asked(usr) == {"--events field --exclude lname"}
    run(usr, "DROP TABLE event_log_mark")
    assert track_sql(usr, ["usr"]) == ""
    track(usr, ["usr"])
    assert asked(usr) == {"--events field --exclude lname"}


@pytest.mark.in_turn
@pytest.mark.parametrize("request_", [TrackRequest(when="age > 1"), TrackRequest(children=("usr_phone",))])
@pytest.mark.parametrize("lost", ["mark", "triggers"])
def test_sql_and_other_tables_are_not_believed_of_one_witness(usr: Engine, request_: TrackRequest, lost: str) -> None:
    track(usr, ["usr"], request_)
    track(usr, ["usr"])
    if lost == "mark":
        run(usr, "DELETE FROM event_log_mark")
    else:
        without_triggers(usr)
    with pytest.raises(InstallError, match=r"could be somebody else's doing\. .*--reset"):
        track(usr, ["usr"])
    track(usr, ["usr"], TriggerOptions(when=request_.when, children=request_.children or ()))
    track(usr, ["usr"])


def test_witnesses_that_disagree_are_told(usr: Engine) -> None:
    track(usr, ["usr"], ASKED)
    altered = "REPLACE(value, 'lname', 'fname')"
    run(usr, f"UPDATE event_log_mark SET value = {altered} WHERE name LIKE 'asked%'")
    assert conditions(usr) == {TriggerCondition.OUTDATED}
    assert {state.note for state in trigger_states(usr)} == {"it was asked for --events field --exclude fname"}
    with pytest.raises(InstallError, match=r"is not clear: --events field --exclude fname or .* lname"):
        track(usr, ["usr"])
    run(usr, "UPDATE event_log_mark SET value = 'x' WHERE name LIKE 'asked%'")
    track(usr, ["usr"])
    assert asked(usr) == {"--events field --exclude lname"}


def test_children_are_noted_with_the_class_that_has_them(usr: Engine) -> None:
    address = (
        "CREATE TABLE address (id INTEGER NOT NULL PRIMARY KEY, idu INTEGER, FOREIGN KEY (idu) REFERENCES usr (idu))"
    )
    run(usr, address, "CREATE TABLE grp (idg INTEGER NOT NULL PRIMARY KEY, name VARCHAR(9))")
    track(usr, ["usr", "grp"], TrackRequest(children=("address",)))
    track(usr, ["grp"])
    track(usr, ["usr"])
    assert conditions(usr) == {TriggerCondition.CURRENT}
    assert asked(usr) == {"--events row-back --child address", "--events row-back"}
    run(usr, "DROP TABLE address")
    with pytest.raises(InstallError, match=r"usr was tracked with .* does not fit any more.*Use --child again"):
        track(usr, ["usr"])
    track(usr, ["usr"], TrackRequest(children=()))
    assert conditions(usr) == {TriggerCondition.CURRENT}


def test_a_table_of_a_pattern_that_cannot_be_tracked_leaves_the_others(usr: Engine) -> None:
    odd = dialect_of(usr).quoted("id=")
    run(usr, f"CREATE TABLE odd (a INTEGER, {odd} INTEGER NOT NULL PRIMARY KEY)")
    left: list[str] = []
    made = track(usr, ["*"], leave=left.append)
    assert {one.owner.rpartition(".")[2] for one in made} == {"usr"}
    [said] = left
    assert "odd is left out: The key column 'id=' of odd" in said
    assert track_sql(usr, ["*"], leave=left.append) == ""
    assert left == [said, said]
    for tables in (["*"], ["usr", "odd"]):
        with pytest.raises(InstallError, match="a character that a table_key cannot carry"):
            track(usr, tables, leave=left.append if tables != ["*"] else None)


def test_a_name_may_be_quoted_as_sql_quotes_it(usr: Engine) -> None:
    run(usr, f"CREATE TABLE {dialect_of(usr).quoted('of a.b')} (id INTEGER NOT NULL PRIMARY KEY)")
    track(usr, ['"of a.b"', '"usr"'])
    assert {one.table for one in trigger_states(usr)} >= {"of a.b", "usr"}
    with pytest.raises(InstallError, match='There is no table or view "of a"'):
        track(usr, ['"of a"'])
    assert untrack(usr, ['"of a.b"'])
    assert "of a.b" not in {one.table for one in trigger_states(usr)}


def test_a_script_keeps_it_too(usr: Engine) -> None:
    script, dialect = track_sql(usr, ["usr"], ASKED), dialect_of(usr)
    parts = script.removeprefix(dialect.script_start).split(f"{dialect.script_end}\n\n")
    run(usr, *(part.strip() for part in parts if part.strip()))
    without_triggers(usr)
    track(usr, ["usr"])
    assert asked(usr) == {"--events field --exclude lname"}


def test_patterns_mean_tables_with_keys_and_no_log(usr: Engine) -> None:
    install(usr, LogNames(table="other_log"))
    run(usr, "CREATE TABLE usr_group (id INTEGER NOT NULL PRIMARY KEY)", "CREATE TABLE keyless (a INTEGER)")
    run(usr, "CREATE VIEW usr_view AS SELECT idu AS pk_idu FROM usr")
    told: list[str] = []
    assert {one.owner.rpartition(".")[2] for one in track(usr, ["*"], note=told.append)} == {"usr", "usr_group"}
    assert told == ["keyless is left out: it has no key."]
    untrack(usr, ["usr_*"])
    assert {one.owner.rpartition(".")[2] for one in trigger_states(usr)} == {"usr"}
    assert {one.owner.rpartition(".")[2] for one in track(usr, ["USR_*"])} == {"usr_group"}
    with pytest.raises(InstallError, match=r"No table with a key matches ush\*\. Did you mean usr\?"):
        track(usr, ["ush*"])
    with pytest.raises(InstallError, match=r"x\* is not tracked"):
        untrack(usr, ["x*"])
    with pytest.raises(InstallError, match="a view is named by its name"):
        track(usr, ["zzz*"])


def test_children_with_keys_are_no_classes_of_a_pattern(usr: Engine) -> None:
    run(
        usr, "CREATE TABLE usr_a (id INTEGER NOT NULL PRIMARY KEY, idu INTEGER, FOREIGN KEY (idu) REFERENCES usr (idu))"
    )
    assert {one.owner.rpartition(".")[2] for one in track(usr, ["usr*"], TrackRequest(children=("usr_a",)))} == {"usr"}
    assert {one.owner.rpartition(".")[2] for one in track(usr, ["*"])} == {"usr"}


def test_a_table_that_is_nearly_there_is_named(usr: Engine) -> None:
    with pytest.raises(InstallError, match=r"no table or view usrr in the database\. Did you mean usr\?"):
        track(usr, ["usrr"])


@pytest.fixture
def refused(usr: Engine) -> Callable[[], None]:
    run(usr, "CREATE TABLE keyless (a INTEGER)")

    def attempt() -> None:
        with pytest.raises(InstallError, match="keyless"):
            track(usr, ["usr", "keyless"], ASKED)

    return attempt


def test_nothing_is_kept_of_what_was_refused(usr: Engine, refused: Callable[[], None]) -> None:
    refused()
    assert trigger_states(usr) == []
    track(usr, ["usr"])
    assert asked(usr) == {"--events row-back"}


def test_what_was_left_out_is_not_read_back(usr: Engine) -> None:
    """The default style reads rows back: what `--exclude` names must not come with them."""
    track(usr, ["usr"], TrackRequest(exclude=("lname",)))
    run(usr, "INSERT INTO usr VALUES (1, 'a', 'secret', NULL)")
    catalog = catalog_of(usr, LogNames(), Config())
    found = catalog.find("usr")
    assert found is not None
    row = RowId(found.table.schema, "usr", "idu=1")
    read = SqlRowReader(usr, catalog).rows({row: found.table.attribute_names})
    assert "fname" in str(read)
    assert "secret" not in str(read)


def test_what_was_left_out_is_not_read_back_under_another_name(usr: Engine) -> None:
    track(usr, ["usr"], TrackRequest(exclude=("lname",)))
    run(usr, "INSERT INTO usr VALUES (1, 'a', 'secret', NULL)", "ALTER TABLE usr RENAME COLUMN lname TO family")
    catalog = catalog_of(usr, LogNames(), Config())
    row = RowId(catalog.tables[0].schema, "usr", "idu=1")
    read = SqlRowReader(usr, catalog).rows({row: catalog.tables[0].attribute_names})[row]
    assert "'fname': 'a'" in str(read)
    assert "secret" not in str(read)


def test_a_class_whose_named_child_is_gone_is_told_of(engine: Engine) -> None:
    install(engine)
    badge = "CREATE TABLE badge (id INTEGER PRIMARY KEY, idu INTEGER NOT NULL, FOREIGN KEY (idu) REFERENCES usr (idu))"
    run(engine, *USR, badge)
    track(engine, ["usr"], TriggerOptions(children=("badge",)))
    run(engine, "DROP TABLE badge")
    assert conditions(engine) == {TriggerCondition.OUTDATED}
    assert any("badge" in str(state.note) for state in trigger_states(engine))
