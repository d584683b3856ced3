"""Who is behind a change: several users through one pool, each change with its own, in every format; and loopback by it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient
from sqlalchemy import Connection, Engine

from eventlog.capture.install import install, uninstall
from eventlog.capture.track import track
from eventlog.cli.main import main
from eventlog.config.settings import from_settings
from eventlog.core.who import MOST_CHARACTERS
from eventlog.daemon.publisher import Publisher
from eventlog.sql.names import CONTEXT
from eventlog.tracked.options import Style, TriggerOptions
from eventlog.xds.validate import validate
from tests.support.logged import USR, run
from tests.support.servers_kafka import consumed, stand_in
from tests.support.who import kind, leave, say
from tests.web.visiting import Visit, opened

STYLES = [style.value for style in Style]


@contextmanager
def acting(engine: Engine, who: Any) -> Iterator[Connection]:
    """Open a transaction in a session of the pool, with the application's word on who is behind it."""
    with engine.begin() as connection:
        say(connection, who)
        yield connection
        leave(connection)


def change(engine: Engine, who: Any, *statements: str) -> None:
    with acting(engine, who) as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


@pytest.fixture
def usr(engine: Engine) -> Engine:
    install(engine)
    run(engine, *USR)
    return engine


def publish(engine: Engine, folder: Path, output: Mapping[str, Any] | None = None, **publisher: Any) -> list[str]:
    """Publish waiting rows into a folder; return the texts of new documents."""
    settings = {
        "source": {"url": engine.url.render_as_string(hide_password=False)},
        "publisher": {"allow_loopback": True, **publisher},
        "output": [
            {"sink": "files", "path": str(folder), "name": "out", "who": True, **(output or {"format": "jsonl"})}
        ],
    }
    before = set(folder.rglob("*")) if folder.exists() else set()
    with Publisher(from_settings(settings, {}, origin="test")) as publishing:
        for _ in publishing.rounds(until_empty=True):
            pass
    new = [file for file in folder.rglob("*") if file.is_file() and file not in before]
    return [file.read_text() for file in sorted(new) if not file.relative_to(folder).parts[0].startswith(".")]


def contexts(engine: Engine) -> list[str | bytes | None]:
    with engine.connect() as connection:
        return list(connection.exec_driver_sql(f"SELECT {CONTEXT} FROM event_log ORDER BY record_id").scalars())


@pytest.mark.parametrize("style", STYLES)
def test_each_change_of_a_pool_has_its_own_user(usr: Engine, tmp_path: Path, style: str) -> None:
    track(usr, ["usr"], TriggerOptions(style=Style(style)))
    people = ("alice", "bob", "carol")
    for number, who in enumerate(people):
        change(usr, who, f"INSERT INTO usr VALUES ({number}, 'a', 'b', 3)")
    run(usr, "INSERT INTO usr VALUES (9, 'a', 'b', 3)")  # the same pool, and nobody said anything
    told = [json.loads(line) for body in publish(usr, tmp_path / "out") for line in body.splitlines()]
    assert {(one["key"]["idu"], one["context"]) for one in told} == {*enumerate(people), (9, None)}
    database_user = {one["user"] for one in told}
    assert database_user == {None} if kind(usr) == "sqlite" else None not in database_user


@pytest.mark.parametrize("coalesce", [False, True])
def test_two_people_never_share_a_change(usr: Engine, tmp_path: Path, coalesce: bool) -> None:
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD))
    change(usr, "alice", "INSERT INTO usr VALUES (1, 'a', NULL, NULL)")
    for who, column in (("alice", "fname = 'b'"), ("bob", "lname = 'c'"), ("carol", "age = 4")):
        change(usr, who, f"UPDATE usr SET {column}")
    bodies = publish(usr, tmp_path, coalesce=coalesce)
    told = [json.loads(line)["context"] for body in bodies for line in body.splitlines()]
    assert told in (["alice", "alice", "bob", "carol"], ["alice", "bob", "carol"])


def test_what_a_session_says_is_bounded_and_safe(usr: Engine, tmp_path: Path) -> None:
    track(usr, ["usr"], TriggerOptions())
    said: list[Any] = [
        "x" * 5000,
        "a\nb\x1b[31m\u202e</who>&\"'",
        "",
        "'; DROP TABLE usr; --",
        "  ",
        "\U0001f600" * 500,
    ]
    if kind(usr) == "sqlite":
        said += [b"\xff\xfe", 7]
    elif kind(usr) == "mysql":  # a variable has any character set
        said += [7, 1.5e300, b"\xff\xfe", b"\xff" * 5000, b"\xed\xa0\xbd"]
    for number, who in enumerate(said):
        change(usr, who, f"INSERT INTO usr VALUES ({number}, 'a', 'b', 3)")
    # The bound of SQLite, whose writers own the file, is the reader's.
    most = MOST_CHARACTERS * (4 if kind(usr) == "mysql" else 1)
    assert kind(usr) == "sqlite" or all(who is None or len(who) <= most for who in contexts(usr))
    [*bodies] = publish(usr, tmp_path / "out", {"format": "xds"})
    assert len(bodies) == len(said)
    for body in bodies:
        assert not validate(body.encode())
    told = "".join(bodies)
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert "a\ufffdb\ufffd[31m\ufffd&lt;/who" in told


def test_loopback_goes_by_what_a_session_says(usr: Engine, tmp_path: Path) -> None:
    track(usr, ["usr"], TriggerOptions())
    for number, who in enumerate(("sync-hr", "alice", "SYNC-HR", "sync-", "resync-hr", None)):
        change(usr, who, f"INSERT INTO usr VALUES ({number}, 'a', 'b', 3)")
    bodies = publish(usr, tmp_path / "out", loopback_contexts=["sync-*"])
    assert [json.loads(line)["key"]["idu"] for body in bodies for line in body.splitlines()] == [1, 2, 4, 5]
    with usr.connect() as connection:
        notes = connection.exec_driver_sql("SELECT reason, note FROM event_log_outcome WHERE note IS NOT NULL").all()
    assert [reason for reason, _ in notes] == ["loopback", "loopback"]
    assert "sync-hr" in notes[0][1]


@pytest.mark.parametrize("form", ["xds", "jsonl", "cloudevents", "debezium", "change-tables"])
def test_every_format_tells_it_where_it_is_asked(usr: Engine, tmp_path: Path, form: str) -> None:
    track(usr, ["usr"], TriggerOptions(style=Style.IMAGE))
    extra = {"file_format": "csv"} if form == "change-tables" else {}
    change(usr, "alice", "INSERT INTO usr VALUES (1, 'a', 'b', 3)", "UPDATE usr SET fname = 'c'", "DELETE FROM usr")
    told = "".join(publish(usr, tmp_path / "out", {"format": form, **extra}))
    assert told.count("alice") == (3 if form != "cloudevents" else 6) + (form == "change-tables")
    change(usr, "alice", "INSERT INTO usr VALUES (2, 'a', 'b', 3)")
    assert "alice" not in "".join(publish(usr, tmp_path / "silent", {"format": form, "who": False, **extra}))


def test_operators_see_it_and_find_rows_by_it(usr: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    track(usr, ["usr"], TriggerOptions())
    for number, who in enumerate(("alice", "bob")):
        change(usr, who, f"INSERT INTO usr VALUES ({number}, 'a', 'b', 3)")
    monkeypatch.setenv("EVENTLOG_SOURCE__URL", usr.url.render_as_string(hide_password=False))
    found = CliRunner().invoke(main, ["log", "--by", "ALIC", "--json"])
    [row] = json.loads(found.output)
    assert row["context"] == "alice"
    told = CliRunner().invoke(main, ["explain", str(row["record_id"])])
    assert "the session says alice." in told.output
    with opened(usr) as page:
        visit = Visit(page)
        rows = visit.get("/rows").body
        assert "alice" in rows
        assert "bob" in rows
        assert "alice" in visit.get(f"/rows/{row['record_id']}").body


def test_a_log_without_the_column_goes_on(usr: Engine, tmp_path: Path) -> None:
    run(usr, f"ALTER TABLE event_log DROP COLUMN {CONTEXT}")
    track(usr, ["usr"], TriggerOptions())
    change(usr, "alice", "INSERT INTO usr VALUES (1, 'a', 'b', 3)")
    [body] = publish(usr, tmp_path / "out")
    assert json.loads(body)["context"] is None
    uninstall(usr, purge=True)


def test_a_session_of_another_character_set_is_read(mariadb: Engine, tmp_path: Path) -> None:
    install(mariadb)
    run(mariadb, *USR)
    track(mariadb, ["usr"], TriggerOptions())
    with mariadb.begin() as connection:
        connection.exec_driver_sql("SET NAMES latin1")
        connection.exec_driver_sql("SET @eventlog_context = CONVERT('Ren\u00e9' USING latin1)")
        connection.exec_driver_sql("INSERT INTO usr VALUES (1, 'a', 'b', 3)")
        connection.exec_driver_sql("SET NAMES utf8mb4")
        connection.exec_driver_sql("SET @eventlog_context = _ucs2 X'D83D'")
        connection.exec_driver_sql("INSERT INTO usr VALUES (2, 'a', 'b', 3)")
    told = [json.loads(line)["context"] for body in publish(mariadb, tmp_path / "out") for line in body.splitlines()]
    assert told == ["Ren\u00e9", "\u00d8="]


@pytest.mark.parametrize("to", ["xds", "change-tables"])
def test_a_conversion_says_it_as_the_publisher_does(usr: Engine, tmp_path: Path, to: str) -> None:
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD))
    for number, who in enumerate(("alice", '{"user": "bob", "why": "<café>"}', None)):
        change(usr, who, f"INSERT INTO usr VALUES ({number}, 'a', 'b', 3)")
    # Two people change one object: even in one conversion these are two changes.
    change(usr, "carol", "UPDATE usr SET fname = 'c' WHERE idu = 0")
    change(usr, "dave", "UPDATE usr SET fname = 'd' WHERE idu = 0")
    url, output = (
        usr.url.render_as_string(hide_password=False),
        {"format": to} | ({"file_format": "json"} if to == "change-tables" else {}),
    )
    config = tmp_path / "eventlog.toml"
    settings = {"sink": "files", "path": str(tmp_path / "never"), "who": True, **output}
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    config.write_text("\n".join(["[publisher]", "allow_loopback = true", "[[output]]", *lines]))
    words = ["convert", "database", url, "--config", str(config), "--engine", "local", "--to", to]
    more = ["--format", "json"] if to == "change-tables" else []
    done = CliRunner().invoke(main, [*words, *more, "--out", str(tmp_path / "converted")])
    assert done.exit_code == 0, done.output
    published = said("\n".join(publish(usr, tmp_path / "published", output)), to)
    converted = said("\n".join(file.read_text() for file in files(tmp_path / "converted")), to)
    assert len(published) == 5 - (to == "xds" and usr.dialect.name == "sqlite")  # nobody there
    assert sorted(converted) == sorted(published)
    assert any("dave" in one for one in converted)


@pytest.mark.in_turn
def test_headers_of_a_converted_message_say_it(usr: Engine, tmp_path: Path) -> None:
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD))
    change(usr, "alice", "INSERT INTO usr VALUES (1, 'a', 'b', 3)")
    change(usr, None, "INSERT INTO usr VALUES (2, 'a', 'b', 3)")
    url = usr.url.render_as_string(hide_password=False)
    config = tmp_path / "eventlog.toml"
    with stand_in() as servers:
        for who in ("true", "false"):
            lines = ["[publisher]", "allow_loopback = true", "[[output]]", 'sink = "kafka"', f'servers = "{servers}"']
            more = ['format = "messages"', f"who = {who}", f'transactional_id = "{who}"']
            config.write_text("\n".join([*lines, *more]))
            words = ["convert", "database", url, "--config", str(config), "--engine", "local", "--to", "messages"]
            done = CliRunner().invoke(main, [*words, "--kafka", servers, "--out", str(tmp_path / who)])
            assert done.exit_code == 0, done.output
        [topic] = [name for name in AdminClient({"bootstrap.servers": servers}).list_topics().topics if "usr" in name]
        found = consumed(servers, topic)
    headers = sorted((str(one.key), sorted(dict(one.headers).items())) for one in found)
    assert [(key, dict(told).get("eventlog.context")) for key, told in headers] == [
        *(("b'1'", None), ("b'1'", b"alice")),
        *(("b'2'", None), ("b'2'", None)),
    ]
    users = 0 if kind(usr) == "sqlite" else 1  # which has none
    assert [len(told) for _, told in headers] == [0, 1 + users, 0, users]  # without `who` there are none


def files(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.suffix in (".xml", ".json", ".jsonl")]


def said(text: str, to: str) -> list[str]:
    """Find who is behind each change, by these texts."""
    if to == "xds":
        return re.findall(r"<who[^>]*>", text)
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{") and "header__" in line]
    told = [row for row in rows if row.get("header__change_oper") not in (None, "B")]
    return [json.dumps([row["header__user"], row["header__context"]]) for row in told]
