"""What a table was tracked with is kept by the registry, and nowhere else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, track_sql, trigger_states, untrack
from eventlog.config.build import catalog_of
from eventlog.config.settings import Config
from eventlog.core.errors import InstallError, UsageError
from eventlog.core.model import RowId
from eventlog.core.schema import Table
from eventlog.sql.dialect import dialect_of, offers
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import reflect
from eventlog.sql.rows import SqlRowReader
from eventlog.tracked.options import Style, TrackRequest
from tests.conformance.cases import CURRENT, came, installed_usr, states
from tests.support.logged import USR, left_by, run
from tests.support.reflected import reflect_table

ASKED = TrackRequest(style=Style.FIELD, exclude=("lname",))
KEPT = {"--events field --exclude lname"}
PERSON = (
    "CREATE TABLE person (name VARCHAR(20) NOT NULL, born INTEGER NOT NULL, nick VARCHAR(20), num INTEGER NOT NULL{})"
)


@pytest.fixture
def usr(engine: Engine) -> Engine:
    return installed_usr(engine)


@pytest.fixture
def log(engine: Engine) -> Engine:
    install(engine)
    return engine


def asked(engine: Engine) -> set[str | None]:
    return {state.asked for state in trigger_states(engine)}


def owners(engine: Engine) -> set[str]:
    return {state.owner.rpartition(".")[2] for state in trigger_states(engine)}


def made_anew(engine: Engine) -> None:
    """Make usr anew, as a copying migration does: its triggers are gone."""
    run(engine, "DROP TABLE usr_phone", "DROP TABLE usr", *USR)


def test_tracking_again_keeps_what_was_asked(usr: Engine) -> None:
    columns = "idu INTEGER NOT NULL, phoneno VARCHAR(40), FOREIGN KEY (idu) REFERENCES usr (idu)"
    run(usr, "DROP TABLE usr_phone", f"CREATE TABLE usr_phone ({columns})")
    track(usr, ["usr"], ASKED)
    told: list[str] = []
    assert track_sql(usr, ["usr"]) == ""
    track(usr, ["usr"], note=told.append)
    assert asked(usr) == KEPT
    assert [one.partition(", ")[2] for one in told if "as before" in one] == ["with --events field --exclude lname."]
    assert any("usr_phone may have the same value twice" in one for one in told), "what should be known is said again"
    assert left_by(usr, "INSERT INTO usr VALUES (1, 'a', 'secret', NULL)") == came("idu=1", fname="a")


def test_only_what_is_said_changes_and_the_change_is_told(usr: Engine) -> None:
    track(usr, ["usr"], TrackRequest(style=Style.FIELD, exclude=("lname",), when="age > 1"))
    told: list[str] = []
    track(usr, ["usr"], TrackRequest(exclude=("lname", "age"), when=""), note=told.append)
    assert asked(usr) == {"--events field --exclude lname,age"}
    assert "was tracked with --events field --exclude lname --when 'age > 1'; it is now" in told[0]
    track(usr, ["usr"], TrackRequest(exclude=()))
    assert asked(usr) == {"--events field"}
    track(usr, ["usr"], TrackRequest(reset=True))
    assert asked(usr) == {"--events row-back"}


def test_a_column_that_was_left_out_and_has_another_name_now_is_not_published(usr: Engine) -> None:
    track(usr, ["usr"], ASKED)
    run(usr, "INSERT INTO usr VALUES (1, 'a', 'secret', NULL)")
    assert "secret" not in read_back(usr)
    run(usr, "ALTER TABLE usr RENAME COLUMN lname TO family")
    assert "'fname': 'a'" in read_back(usr)
    assert "secret" not in read_back(usr)
    with pytest.raises(UsageError, match=r"no column lname.*It was tracked with .*use --columns or --exclude again"):
        track(usr, ["usr"])
    with pytest.raises(UsageError, match="no column nope") as said:
        track(usr, ["usr"], TrackRequest(exclude=("nope",)))
    assert "tracked with" not in str(said.value)
    track(usr, ["usr"], TrackRequest(exclude=("family",)))
    assert asked(usr) == {"--events field --exclude family"}


def read_back(engine: Engine) -> str:
    """Read back all the publisher would of the row."""
    catalog = catalog_of(engine, LogNames(), Config())
    row = RowId(catalog.tables[0].schema, "usr", "idu=1")
    return str(SqlRowReader(engine, catalog).rows({row: catalog.tables[0].attribute_names})[row])


def test_a_table_that_was_made_anew_is_missing_and_tracked_as_before(usr: Engine) -> None:
    track(usr, ["usr"], ASKED)
    made_anew(usr)
    assert (states(usr), asked(usr)) == ({TriggerCondition.MISSING}, KEPT)
    track(usr, ["usr"])
    assert (states(usr), asked(usr)) == (CURRENT, KEPT)
    made_anew(usr)
    assert untrack(usr, ["usr"]) == []
    assert trigger_states(usr) == []
    track(usr, ["usr"])
    assert asked(usr) == {"--events row-back"}


@pytest.mark.parametrize("request_", [TrackRequest(when="age > 1"), TrackRequest(children=("usr_phone",)), ASKED])
@pytest.mark.parametrize("lost", ["triggers", "marks"])
def test_what_was_asked_stands_in_the_registry_alone(usr: Engine, request_: TrackRequest, lost: str) -> None:
    track(usr, ["usr"], request_)
    before = asked(usr)
    if lost == "marks":
        run(usr, "DELETE FROM event_log_mark", "DELETE FROM event_log_seen")
    else:
        made_anew(usr)
    track(usr, ["usr"])
    assert (states(usr), asked(usr)) == (CURRENT, before)
    assert track_sql(usr, ["usr"]) == ""


def test_a_registry_that_somebody_edited_is_told_and_mended(usr: Engine) -> None:
    track(usr, ["usr"], ASKED)
    run(usr, "UPDATE event_log_tracked SET options = 'x'")
    assert states(usr) == {TriggerCondition.OUTDATED}
    assert {"the registry is damaged there" in str(state.note) for state in trigger_states(usr)} == {True}
    with pytest.raises(InstallError, match=r"cannot be read.*--reset"):
        track(usr, ["usr"])
    track(usr, ["usr"], replace(ASKED, reset=True))
    assert (states(usr), asked(usr)) == (CURRENT, KEPT)


def test_a_trigger_that_the_registry_lacks_is_a_stray_until_it_is_tracked(usr: Engine) -> None:
    track(usr, ["usr"], ASKED)
    run(usr, "DELETE FROM event_log_trigger WHERE name LIKE '%insert' OR name LIKE '%INSERT'")
    found = {state.state for state in trigger_states(usr)}
    assert found == {TriggerCondition.CURRENT, TriggerCondition.MISSING, TriggerCondition.STRAY}
    track(usr, ["usr"])
    assert (states(usr), asked(usr)) == (CURRENT, KEPT)
    assert left_by(usr, "INSERT INTO usr VALUES (1, 'a', 'secret', NULL)") == came("idu=1", fname="a")
    run(usr, "DELETE FROM event_log_tracked")
    track(usr, ["usr"], ASKED)
    assert states(usr) == CURRENT


def test_children_are_noted_with_the_class_that_has_them(usr: Engine) -> None:
    columns = "id INTEGER NOT NULL PRIMARY KEY, idu INTEGER, FOREIGN KEY (idu) REFERENCES usr (idu)"
    run(usr, f"CREATE TABLE address ({columns})", "CREATE TABLE grp (idg INTEGER NOT NULL PRIMARY KEY)")
    track(usr, ["usr", "grp"], TrackRequest(children=("address",)))
    track(usr, ["*"])
    assert (states(usr), owners(usr)) == (CURRENT, {"usr", "grp"})
    assert asked(usr) == {"--events row-back --child address", "--events row-back"}
    run(usr, "DROP TABLE address")
    with pytest.raises(InstallError, match=r"usr was tracked with .* does not fit any more.*Use --child again"):
        track(usr, ["usr"])
    track(usr, ["usr"], TrackRequest(children=()))
    assert states(usr) == CURRENT


def test_a_table_of_a_pattern_that_cannot_be_tracked_leaves_the_others(usr: Engine) -> None:
    run(usr, f"CREATE TABLE odd (a INTEGER, {dialect_of(usr).quote('id=')} INTEGER NOT NULL PRIMARY KEY)")
    left: list[str] = []
    track(usr, ["*"], leave=left.append)
    assert owners(usr) == {"usr"}
    [said] = left
    assert "odd is left out: The key column 'id=' of odd" in said
    assert track_sql(usr, ["*"], leave=left.append) == ""
    assert left == [said, said]
    for tables in (["*"], ["usr", "odd"]):
        with pytest.raises(InstallError, match="a character that a table_key cannot carry"):
            track(usr, tables, leave=left.append if tables != ["*"] else None)


def test_a_name_may_be_quoted_as_sql_quotes_it(usr: Engine) -> None:
    run(usr, f"CREATE TABLE {dialect_of(usr).quote('of a.b')} (id INTEGER NOT NULL PRIMARY KEY)")
    track(usr, ['"of a.b"', '"usr"'])
    assert {one.table for one in trigger_states(usr)} >= {"of a.b", "usr"}
    with pytest.raises(InstallError, match='There is no table or view "of a"'):
        track(usr, ['"of a"'])
    assert untrack(usr, ['"of a.b"'])
    assert "of a.b" not in {one.table for one in trigger_states(usr)}


def test_patterns_mean_tables_with_keys_and_no_log(usr: Engine) -> None:
    install(usr, LogNames(table="other_log"))
    run(usr, "CREATE TABLE usr_group (id INTEGER NOT NULL UNIQUE)", "CREATE TABLE keyless (a INTEGER)")
    run(usr, "CREATE VIEW usr_view AS SELECT idu AS pk_idu FROM usr")
    told: list[str] = []
    track(usr, ["*"], note=told.append)
    assert owners(usr) == {"usr", "usr_group"}
    assert "keyless is left out: it has no key." in told
    untrack(usr, ["usr_*"])
    assert owners(usr) == {"usr"}
    track(usr, ["USR_*"])
    assert owners(usr) == {"usr", "usr_group"}


@pytest.mark.parametrize(
    "act, table, said",
    [
        (track, "ush*", r"No table with a key matches ush\*\. Did you mean usr\?"),
        (track, "usrr", r"no table or view usrr in the database\. Did you mean usr\?"),
        (track, "zzz*", "a view is named by its name"),
        (untrack, "x*", r"x\* is not tracked"),
    ],
)
def test_what_is_not_there_is_said_with_what_is_nearly_there(usr: Engine, act: object, table: str, said: str) -> None:
    assert callable(act)
    with pytest.raises(InstallError, match=said):
        act(usr, [table])


def test_nothing_is_kept_of_what_was_refused(usr: Engine) -> None:
    run(usr, "CREATE TABLE keyless (a INTEGER)")
    with pytest.raises(InstallError, match="keyless"):
        track(usr, ["usr", "keyless"], ASKED)
    assert trigger_states(usr) == []
    track(usr, ["usr"])
    assert asked(usr) == {"--events row-back"}


def keys_left(engine: Engine, statement: str) -> set[str]:
    return {row[1] for row in left_by(engine, statement)}


@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.FIELD])
def test_a_unique_index_over_columns_that_are_not_null_is_a_key(log: Engine, style: Style) -> None:
    run(log, PERSON.format(", UNIQUE (born, name)"))
    track(log, ["person"], TrackRequest(style=style))
    assert keys_left(log, "INSERT INTO person VALUES ('Ann', 1970, 'A', 1)") == {"born=1970+name=Ann"}
    assert left_by(log, "UPDATE person SET born = 1971")[0][:2] == (4, "born=1970+name=Ann")
    assert asked(log) == {f"--events {style.value} --key born,name"}
    [row] = SqlRowReader(log, catalog_of(log, LogNames(), Config())).rows(
        {RowId(reflect_table(log, "person").schema, "person", "born=1971+name=Ann"): frozenset(["nick"])}
    )
    assert row.key == "born=1971+name=Ann"


def test_what_is_no_key_of_every_row_is_not_taken(log: Engine) -> None:
    run(log, PERSON.format(", UNIQUE (nick)"), "CREATE INDEX person_num ON person (num)")
    if dialect_of(log).ddl.partial_indexes:
        run(log, "CREATE UNIQUE INDEX person_part ON person (born) WHERE num > 0")
        run(log, "CREATE UNIQUE INDEX person_lower ON person (lower(name))")
    assert reflect_table(log, "person").key == ()
    with pytest.raises(InstallError, match=r"no unique index over columns that are NOT NULL.*--key A,B"):
        track(log, ["person"])
    for index, key in (("num, name", ("num", "name")), ("name", ("name",))):
        run(log, f"CREATE UNIQUE INDEX person_{len(key)} ON person ({index})")
        assert reflect_table(log, "person").key == key


def test_a_key_that_was_taken_stays_when_another_index_comes(log: Engine) -> None:
    run(log, PERSON.format(", UNIQUE (born, name)"))
    track(log, ["person"])
    run(log, "CREATE UNIQUE INDEX person_one ON person (num)")
    assert states(log) == CURRENT
    track(log, ["person"])
    assert keys_left(log, "INSERT INTO person VALUES ('B', 2, 'b', 7)") == {"born=2+name=B"}
    told: list[str] = []
    track(log, ["person"], TrackRequest(reset=True), note=told.append)
    assert keys_left(log, "INSERT INTO person VALUES ('C', 3, 'c', 8)") == {"num=8"}
    assert "--key num" in told[0]


def test_somebody_may_know_a_better_key(usr: Engine) -> None:
    run(usr, PERSON.format(""))
    track(usr, ["person"], TrackRequest(key=("NUM", "name")))
    assert keys_left(usr, "INSERT INTO person VALUES ('A', 1, 'a', 7)") == {"num=7+name=A"}
    track(usr, ["person"])
    assert asked(usr) == {"--events row-back --key num,name"}
    assert ("person", ("num", "name")) in {(table.name, table.key) for table in catalog_of(usr, LogNames(), Config())}
    told: list[str] = []
    track(usr, ["usr"], TrackRequest(key=("fname",)), note=told.append)
    whole = reflect_table(usr, "usr").whole
    assert told[0] == f"usr_phone is not captured with {whole}: its foreign key is not about fname."
    assert "fname may be NULL in the key of usr" in told[-1]
    known = ("may have two rows with one key", "fname may be NULL in")
    assert all(any(words in one for words in known) for one in told[1:]), "no index holds that key"
    track(usr, ["usr"], TrackRequest(key=("idu",)))
    assert {state.asked for state in trigger_states(usr) if state.owner.endswith("usr")} == {"--events row-back"}


@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.IMAGE])
def test_null_in_a_key_fails_no_writer_and_ends_no_row(log: Engine, style: Style) -> None:
    run(log, "CREATE TABLE slot (a INTEGER, b INTEGER, name VARCHAR(9))")
    told: list[str] = []
    wanted = TrackRequest(key=("a", "b"), style=style)
    if style is Style.IMAGE and offers(dialect_of(log), "statement_trigger"):
        # Nothing keeps two rows from having one key.
        with pytest.raises(UsageError, match=r"two rows with one key .* --events row-back"):
            track(log, ["slot"], wanted)
        return
    track(log, ["slot"], wanted, note=told.append)
    assert "a, b may be NULL in the key of slot" in told[-1]
    both = {"a=1+b=", "a=+b=2"}
    assert keys_left(log, "INSERT INTO slot VALUES (1, NULL, 'x'), (NULL, 2, 'y')") == both
    changed = left_by(log, "UPDATE slot SET name = 'z'")
    assert {row[:2] for row in changed} == {(6, key) for key in both}
    assert (4, "a=1+b=") in {row[:2] for row in left_by(log, "UPDATE slot SET b = 3 WHERE a = 1")}


def test_a_key_that_cannot_be_one_is_refused(usr: Engine) -> None:
    run(usr, PERSON.format(""))
    with pytest.raises(UsageError, match=r"person has no column nam,.*Did you mean name\?"):
        track(usr, ["person"], TrackRequest(key=("nam",)))
    for tables in (["person", "usr"], ["p*"]):
        with pytest.raises(UsageError, match="--key is about one table"):
            track(usr, tables, TrackRequest(key=("num",)))
    with pytest.raises(InstallError, match="no primary key"):
        track(usr, ["person"], TrackRequest(key=()))


def test_children_stay_children_and_find_a_parent_by_its_unique_index(log: Engine) -> None:
    columns = "code VARCHAR(9) NOT NULL, tag VARCHAR(9) NOT NULL, UNIQUE (code, tag), FOREIGN KEY (code) REFERENCES firm (code)"
    run(
        log,
        "CREATE TABLE firm (code VARCHAR(9) NOT NULL UNIQUE, title VARCHAR(20))",
        f"CREATE TABLE firm_tag ({columns})",
    )
    found: list[Table] = [table for table in reflect(log) if table.name.startswith("firm")]
    assert [(table.name, table.key) for table in found] == [("firm", ("code",))]
    track(log, ["firm", "firm_tag"])
    assert owners(log) == {"firm"}
    run(log, "INSERT INTO firm VALUES ('x', NULL)")
    assert left_by(log, "INSERT INTO firm_tag VALUES ('x', 'red')") == [(6, "code=x", None, None, None)]
    track(log, ["firm"])
    assert {state.table for state in trigger_states(log)} == {"firm", "firm_tag"}


def test_the_replica_identity_is_a_hint(postgresql: Engine) -> None:
    run(postgresql, PERSON.format(", UNIQUE (num)"), "CREATE UNIQUE INDEX person_two ON person (born, name)")
    found = [reflect_table(postgresql, "person").key]
    for identity in ("USING INDEX person_two", "FULL"):
        run(postgresql, f"ALTER TABLE person REPLICA IDENTITY {identity}")
        found.append(reflect_table(postgresql, "person").key)
    assert found == [("num",), ("born", "name"), ("num",)]
