"""Tables without a primary key: a unique index over columns that are NOT NULL tells their rows apart, or somebody who knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from eventlog.capture import Style, TrackRequest, TriggerCondition, track, trigger_states
from eventlog.capture.install import install
from eventlog.config.build import catalog_of
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import InstallError, UsageError
from eventlog.core.schema import Table
from eventlog.daemon import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import reflect, reflect_table
from tests.support.logged import USR, left_by, run

PERSON = (
    "CREATE TABLE person (name VARCHAR(20) NOT NULL, born INTEGER NOT NULL, nick VARCHAR(20), num INTEGER NOT NULL{})"
)


@pytest.fixture
def log(engine: Engine) -> Engine:
    install(engine)
    return engine


def key(engine: Engine, table: str = "person") -> tuple[str, ...]:
    return reflect_table(engine, table).key


@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.FIELD])
def test_a_unique_index_is_a_key_from_trigger_to_document(log: Engine, style: Style, tmp_path: Path) -> None:
    run(log, PERSON.format(", UNIQUE (born, name)"))
    track(log, ["person"], TrackRequest(style=style))
    found = left_by(log, "INSERT INTO person VALUES ('Ann', 1970, 'A', 1)")
    assert {one[1] for one in found} == {"born=1970+name=Ann"}
    moved = left_by(log, "UPDATE person SET born = 1971")
    assert moved[0][:2] == (4, "born=1970+name=Ann")
    assert {state.asked for state in trigger_states(log)} == {f"--events {style.value} --key born,name"}
    config = Config(
        source=SourceConfig(url=log.url.render_as_string(hide_password=False)),
        publisher=PublisherConfig(allow_loopback=True),
        output=(FilesOutput(path=str(tmp_path)),),
    )
    with Publisher(config) as publisher:
        publisher.run_once()
    texts = "".join(file.read_text() for file in tmp_path.glob("*.xml"))
    assert "born=1971" in texts
    assert "Ann" in texts
    with log.connect() as connection:
        letters = connection.execute(text("SELECT DISTINCT status FROM event_log")).scalars().all()
    assert letters == ["S"]


def test_what_is_no_key_of_every_row_is_not_taken(log: Engine) -> None:
    run(log, PERSON.format(", UNIQUE (nick)"), "CREATE INDEX person_num ON person (num)")
    if dialect_of(log).partial_indexes:
        run(log, "CREATE UNIQUE INDEX person_part ON person (born) WHERE num > 0")
        run(log, "CREATE UNIQUE INDEX person_lower ON person (lower(name))")
    assert key(log) == ()
    with pytest.raises(InstallError, match=r"no unique index over columns that are NOT NULL.*--key A,B"):
        track(log, ["person"])
    run(log, "CREATE UNIQUE INDEX person_pair ON person (num, name)")
    assert key(log) == ("num", "name")
    run(log, "CREATE UNIQUE INDEX person_one ON person (name)")
    assert key(log) == ("name",)


def test_a_key_that_was_taken_stays_when_another_index_comes(log: Engine) -> None:
    run(log, PERSON.format(", UNIQUE (born, name)"))
    track(log, ["person"])
    run(log, "CREATE UNIQUE INDEX person_one ON person (num)")
    assert {state.state for state in trigger_states(log)} == {TriggerCondition.CURRENT}
    track(log, ["person"])
    assert {one[1] for one in left_by(log, "INSERT INTO person VALUES ('B', 2, 'b', 7)")} == {"born=2+name=B"}
    told: list[str] = []
    track(log, ["person"], TrackRequest(reset=True), note=told.append)
    assert {one[1] for one in left_by(log, "INSERT INTO person VALUES ('C', 3, 'c', 8)")} == {"num=8"}
    assert "--key num" in told[0]


def test_somebody_may_know_better(log: Engine) -> None:
    run(log, PERSON.format(""), *USR)
    track(log, ["person"], TrackRequest(key=("NUM", "name")))
    assert {one[1] for one in left_by(log, "INSERT INTO person VALUES ('A', 1, 'a', 7)")} == {"num=7+name=A"}
    track(log, ["person"])
    assert {state.asked for state in trigger_states(log)} == {"--events row-back --key num,name"}
    named = {table.name: table.key for table in catalog_of(log, LogNames(), Config())}
    assert named["person"] == ("num", "name")
    told: list[str] = []
    track(log, ["usr"], TrackRequest(key=("fname",)), note=told.append)
    assert told[0] == f"usr_phone is not captured with {whole(log, 'usr')}: its foreign key is not about fname."
    assert all("may have two rows with one key" in text for text in told[1:]), "no index holds that key"
    track(log, ["usr"], TrackRequest(key=("idu",)))
    assert {state.asked for state in trigger_states(log) if state.owner.endswith("usr")} == {"--events row-back"}
    with pytest.raises(UsageError, match=r"person has no column nam,.*Did you mean name\?"):
        track(log, ["person"], TrackRequest(key=("nam",)))
    for tables in (["person", "usr"], ["p*"]):
        with pytest.raises(UsageError, match="--key is about one table"):
            track(log, tables, TrackRequest(key=("num",)))
    with pytest.raises(InstallError, match="no primary key"):
        track(log, ["person"], TrackRequest(key=()))


def whole(engine: Engine, table: str) -> str:
    return reflect_table(engine, table).whole


def test_children_stay_children_and_find_a_parent_by_its_unique_index(log: Engine) -> None:
    run(
        log,
        "CREATE TABLE firm (code VARCHAR(9) NOT NULL UNIQUE, title VARCHAR(20))",
        "CREATE TABLE firm_tag (code VARCHAR(9) NOT NULL, tag VARCHAR(9) NOT NULL, UNIQUE (code, tag),"
        " FOREIGN KEY (code) REFERENCES firm (code))",
    )
    found: dict[str, Table] = {table.name: table for table in reflect(log) if table.name.startswith("firm")}
    assert {name: table.key for name, table in found.items()} == {"firm": ("code",)}
    made = track(log, ["firm", "firm_tag"])
    assert {state.owner.rpartition(".")[2] for state in made} == {"firm"}
    assert {state.table for state in made} == {"firm", "firm_tag"}
    run(log, "INSERT INTO firm VALUES ('x', NULL)")
    assert left_by(log, "INSERT INTO firm_tag VALUES ('x', 'red')") == [(6, "code=x", None, None, None)]
    track(log, ["firm"])
    assert {state.table for state in trigger_states(log)} == {"firm", "firm_tag"}


def test_a_pattern_means_tables_with_unique_indexes_too(log: Engine) -> None:
    run(log, PERSON.format(", UNIQUE (num)"))
    assert {one.owner.rpartition(".")[2] for one in track(log, ["per*"])} == {"person"}


def test_the_replica_identity_is_a_hint(postgresql: Engine) -> None:
    run(postgresql, PERSON.format(", UNIQUE (num)"), "CREATE UNIQUE INDEX person_two ON person (born, name)")
    assert key(postgresql) == ("num",)
    run(postgresql, "ALTER TABLE person REPLICA IDENTITY USING INDEX person_two")
    assert key(postgresql) == ("born", "name")
    run(postgresql, "ALTER TABLE person REPLICA IDENTITY FULL")
    assert key(postgresql) == ("num",)
