"""What an attacker tries who may write to the log or to a tracked table, who is a receiver, or who reads what is shown."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.cli.main import main
from eventlog.core.errors import EventlogError, ExpressionError, XmlError
from eventlog.core.model import Document, Op
from eventlog.core.schema import Catalog, Table
from eventlog.qlik.messages.names import topic_of
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.change_files.sink import ChangeTableFiles
from eventlog.sinks.files import FileSink
from eventlog.sinks.http.address import HttpSettings, trust
from eventlog.sinks.http.sink import read_reply
from eventlog.sinks.kafka.settings import KafkaSettings, client_options
from eventlog.sql.access import verbatim
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TriggerOptions
from tests.acceptance.command import eventlog
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import Process, config_of, publish_all, site, url_of
from tests.support.changerows import CSV, USR, documents, told
from tests.support.sinks import opened

INJECTIONS = (
    "usr; DROP TABLE victim; --",
    "usr'; DROP TABLE victim; --",
    'usr"; DROP TABLE victim; --',
    "idu=1; DROP TABLE victim",
    "idu=1' OR '1'='1",
    'idu="1\\" OR 1=1 --"',
    "fname) FROM usr; DROP TABLE victim; --",
    ":idu %(idu)s %s ? {0} $1",
    "\\'; DROP TABLE victim; --",
    "1 UNION SELECT secret FROM victim",
)
FIELDS = ("table_name", "table_key", "column_name", "old_value", "new_value", "perpetrator", "key name")


@pytest.fixture
def log(engine: Engine) -> LogTable:
    """A log, its table, and a table that must not be touched."""
    found = site(engine)
    found.run("CREATE TABLE victim (secret VARCHAR(40))")
    found.run("INSERT INTO victim VALUES ('hidden')")
    found.run("INSERT INTO usr (idu, fname, lname) VALUES (1, 'Jack', 'Frost')")
    return found


def test_sql_in_any_field_of_a_row_stays_text(log: LogTable, tmp_path: Path) -> None:
    number = 0
    for field in FIELDS:
        for injection in INJECTIONS:
            for kind in (1, 2, 3, 4, 6, 8):
                number += 1
                column = {"column_name": None, "new_value": None} if kind in (4, 6) else {}
                hostile = {"table_key": f"{injection}=1"} if field == "key name" else {field: injection[:40]}
                row: dict[str, Any] = {"table_key": "idu=1", "event_type": kind, **column, **hostile}
                log.write(number, key=row.pop("table_key"), **row)
    publish_all(config_of(log.engine, tmp_path / "out", batch_size=128))
    assert log.ask("SELECT secret FROM victim") == [("hidden",)]
    assert log.ask("SELECT idu, fname FROM usr") == [(1, "Jack")]
    assert set(log.statuses().values()) == {"S", "W", "E"}
    assert not [body for body in (tmp_path / "out").glob("*.xml") if b"hidden" in body.read_bytes()]


@pytest.mark.parametrize(
    "database, name",
    [
        *product(["sqlite"], ['usr"; DROP TABLE victim; --', "usr'; --", "a b`c", "../../usr", "%s:x{0}"]),
        ("postgresql", 'usr"; DROP TABLE victim; --$body$'),
        ("postgresql", "%s:x{0}%%"),
        ("mariadb", "%s:x{0}%%"),
        ("mariadb", "usr; DROP TABLE victim; --' OR ''='"),
    ],
)
def test_sql_in_the_name_of_a_table_and_of_a_column_stays_a_name(
    request: pytest.FixtureRequest, database: str, tmp_path: Path, name: str
) -> None:
    assert published_under(request.getfixturevalue(database), tmp_path, name) == ("S", 0)


def published_under(engine: Engine, folder: Path, name: str) -> tuple[str, int]:
    """How a row of a table of this name ends, and what a table holds that the name would like to see dropped."""
    install(engine, LogNames())
    log = LogTable(engine)
    log.run("CREATE TABLE victim (secret VARCHAR(40))")
    quoted = '"' + name.replace('"', '""') + '"'
    with engine.begin() as connection:
        connection.execute(verbatim(f"CREATE TABLE {quoted} (id INTEGER NOT NULL PRIMARY KEY, {quoted} VARCHAR(40))"))
    track(engine, [name], TriggerOptions(), LogNames())
    with engine.begin() as connection:
        connection.execute(verbatim(f"INSERT INTO {quoted} VALUES (1, 'x')"))
    assert list(log.statuses().values()) == ["N"]
    publish_all(config_of(engine, folder / "out"))
    (letter,), ((left,),) = log.statuses().values(), log.ask("SELECT count(*) FROM victim")
    return letter, int(left)


@pytest.mark.parametrize("option", ["--log", "--status", "--table"])
def test_sql_in_options_is_refused_or_stays_text(sqlite: Engine, option: str) -> None:
    log = site(sqlite)
    log.write(1)
    ran = CliRunner().invoke(main, ["log", option, 'x"; DELETE FROM event_log; --', "--database", url_of(sqlite)])
    assert ran.exception is None or isinstance(ran.exception, EventlogError)
    assert log.statuses() == {1: "N"}


REPLIES = {
    "our own document, with a type": "<!DOCTYPE nds><nds><output/></nds>",
    "a file": '<!DOCTYPE o [<!ENTITY f SYSTEM "file:///etc/passwd">]><output><status level="error">&f;</status></output>',
    "an address": '<!DOCTYPE o SYSTEM "http://127.0.0.1:1/x.dtd"><output/>',
    "a bomb": "<!DOCTYPE o [<!ENTITY a 'aaaaaaaaaa'>"
    + "".join(f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(9))
    + "]><output><status level='error'>&j;</status></output>",
    "a parameter entity": '<!DOCTYPE o [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><output/>',
    "depth": "<a>" * 100_000,
    "a huge text": f"<output><status level='error'>{'x' * 11_000_000}</status></output>",
    "many attributes": f"<output {' '.join(f'a{n}=' + chr(34) + chr(34) for n in range(3000))}><status/></output>",
}


@pytest.mark.parametrize("reply", REPLIES)
def test_a_receiver_cannot_read_files_nor_exhaust_us_by_its_reply(reply: str) -> None:
    document = Document(id="1", body=b"", covers={"1": ((1,),)})
    with pytest.raises(XmlError) as caught:
        read_reply(document, REPLIES[reply].encode())
    assert "root:" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("identity", ["../../evil", "/etc/evil", "..", ".", "a/../../b", "\\..\\b", "nul\0byte", "C:x"])
def test_a_document_never_leaves_its_folder(tmp_path: Path, identity: str) -> None:
    sink = opened(FileSink(tmp_path / "in" / "out", ".xml"))
    sink.commit("", [Document(id=identity, body=b"x", covers={})])
    assert sink.last() == identity
    _assert_only_below(tmp_path, tmp_path / "in" / "out")


@pytest.mark.parametrize("name", ["../../evil", "/evil", "..", "a/../../b", "evil\0", "\\..\\evil"])
@pytest.mark.parametrize("schema", [None, "../..", "/", ".."])
def test_a_change_table_never_leaves_its_folder(tmp_path: Path, schema: str | None, name: str) -> None:
    table = replace(USR, name=name, schema=schema)
    change = told(1, Op.ADD, 1, fname="Jack")
    change = replace(change, row=replace(change.row, schema=schema, table=name))
    sink = ChangeTableFiles(tmp_path / "in" / "out", CSV)
    sink.commit("", documents(change, catalog=Catalog([table])))
    written = _assert_only_below(tmp_path, tmp_path / "in" / "out")
    assert [path for path in written if path.suffix == ".csv"]


def _assert_only_below(outside: Path, inside: Path) -> list[Path]:
    found = [path for path in outside.rglob("*") if path.is_file()]
    assert found
    assert [path for path in found if not path.resolve().is_relative_to(inside)] == []
    return found


@pytest.mark.parametrize("name", ["../evil", "a b", "x" * 300, "a\nb", "..", "ü"])
def test_a_table_cannot_choose_a_topic_that_no_topic_can_be_called(name: str) -> None:
    with pytest.raises(ExpressionError, match="no topic can be called"):
        topic_of(Table(name=name, columns=USR.columns), MessageSettings(topic="{table}"))


FORGERY = "x\n2026-01-01T00:00:00Z [info] lock_taken post=forged\r\x1b[2J\x1b]0;owned\x07\u2028\x85"


@pytest.mark.parametrize("style", ["json", "console"])
def test_a_row_cannot_write_a_line_of_the_journal(sqlite: Engine, tmp_path: Path, style: str) -> None:
    log = site(sqlite)
    for number, field in enumerate(("table_name", "table_key", "column_name", "new_value"), 1):
        log.write(number, **({"key": FORGERY} if field == "table_key" else {field: FORGERY}))
    log.run("INSERT INTO event_log (record_id, table_key, status, event_type) VALUES (9, 'idu=1', 'N', 99)")
    with Process(sqlite, tmp_path / "out", "--until-empty", "--log-format", style) as process:
        assert process.end() == 0
    said = process.said.read_text()
    assert not [character for character in said if character != "\n" and not character.isprintable()]
    assert not [line for line in said.splitlines() if line.startswith("2026-01-01T00:00:00Z")]


@pytest.mark.parametrize("options", [[], ["--follow"], ["--json"]])
def test_a_row_cannot_speak_to_the_terminal(
    sqlite: Engine, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = site(sqlite)
    log.write(1, key=FORGERY, table_name=FORGERY, new_value=FORGERY)

    def enough(seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
        if current_thread() is not main_thread():  # those of Spark, which an earlier test has left
            return sleep(seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", enough)
    asked = ["log", *options, "--database", url_of(sqlite)]
    ran = CliRunner().invoke(main, asked, env={"COLUMNS": "1000"})
    assert "forged" in ran.output
    controls = {*map(chr, range(32)), *map(chr, range(127, 160)), "\u2028"} - {"\n"}
    in_json = (
        {"\x85", "\u2028"} if "--json" in options else set[str]()
    )  # JSON has them as they are, and no program minds
    assert controls & set(ran.output) <= in_json
    assert not [line for line in ran.output.splitlines() if line.startswith("2026-01-01T00:00:00Z")]


def test_a_secret_of_an_output_is_in_no_words(sqlite: Engine, tmp_path: Path) -> None:
    site(sqlite).write(1)
    file = tmp_path / "eventlog.toml"
    file.write_text(
        f'[source]\nurl = "{url_of(sqlite)}"\n[publisher]\nallow_loopback = true\n[[output]]\nsink = "http"\n'
        'url = "http://127.0.0.1:1/xds?key=hidden-key"\nauthorization = "${TOKEN}"\n'
    )
    done = eventlog("--debug", "run", "--until-empty", "--config", file, environment={"TOKEN": "Bearer hidden-token"})
    words = done.stdout + done.stderr
    assert "127.0.0.1:1" in words
    assert "hidden" not in words


def test_whom_we_speak_to_is_verified_unless_somebody_says_otherwise() -> None:
    context = trust(HttpSettings(url="https://example.org/"))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    options = client_options(KafkaSettings(servers="a:1", tls=True))
    assert options["enable.ssl.certificate.verification"] is True
    assert "ssl.endpoint.identification.algorithm" not in options


def test_a_hostile_search_path_gets_nothing_of_the_owner(postgresql: Engine) -> None:
    """Functions, operators and a log of the attacker's own, in front of everybody else's."""
    install(postgresql, LogNames())
    log = LogTable(postgresql)
    log.run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40), lname VARCHAR(40))")
    track(postgresql, ["usr"], TriggerOptions(), LogNames())
    log.run("CREATE TABLE public.caught (who TEXT)")
    log.run("DROP ROLE IF EXISTS mallory")
    log.run("CREATE ROLE mallory")
    log.run("GRANT SELECT, INSERT, UPDATE ON usr, caught TO mallory")
    log.run("CREATE SCHEMA evil AUTHORIZATION mallory")
    with postgresql.connect() as connection:
        for statement in EVIL:
            connection.exec_driver_sql(statement)
        connection.commit()
    try:
        assert log.ask("SELECT who FROM caught WHERE who <> 'mallory'") == []
        assert log.ask("SELECT table_key, table_name FROM public.event_log") == [("idu=1", "usr"), ("idu=1", "usr")]
    finally:
        log.run("DROP OWNED BY mallory CASCADE")
        log.run("DROP ROLE mallory")


CATCH = (
    "CREATE FUNCTION evil.{0} RETURNS {1} LANGUAGE plpgsql AS"
    " $$BEGIN INSERT INTO public.caught VALUES (current_user); RETURN {2}; END$$"
)
EVIL = (
    "SET LOCAL ROLE mallory",
    CATCH.format("catch(text, text)", "text", "$1"),
    CATCH.format("now()", "timestamptz", "pg_catalog.now()"),
    CATCH.format("replace(text, text, text)", "text", "$1"),
    "CREATE OPERATOR evil.|| (FUNCTION = evil.catch, LEFTARG = text, RIGHTARG = text)",
    "CREATE TABLE evil.event_log (LIKE public.caught)",
    "CREATE TEMPORARY TABLE event_log (record_id INTEGER)",
    "SET LOCAL search_path = pg_temp, evil, public, pg_catalog",
    "INSERT INTO public.usr VALUES (1, 'Jack', 'Frost')",
    "UPDATE public.usr SET fname = 'John'",
)
