"""What may be read anywhere: no spelling of a secret gets through, and nothing that a terminal would obey."""

from __future__ import annotations

import copy
import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.config.build import name_of
from eventlog.core.errors import SinkError
from eventlog.core.model import Outcome, Reason, Status
from eventlog.core.secrets import make_readable, mask_secrets, visible
from eventlog.daemon.logging import Style, journal, library_journal
from eventlog.publisher.statuses import note_of
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.http.plugin import HttpOutput
from eventlog.sql.connect import make_readable_url, read_url
from tests.support.cost import seconds

QUERIES = (
    "password=geheim",
    "PASSWORD=geheim",
    "sslpassword=geheim",
    "sslmode=require&sslpassword=geheim&application_name=x",
    "passwd=geheim",
    "pass%77ord=geheim",
    "password=geh%65im",
    "password=%27geheim%20geheim",
    "new_password=geheim",
    "newpassword=geheim",
    "wallet_password=geheim",
    "oauth_client_secret=geheim",
    "scram_client_key=geheim",
    "access_token=geheim",
    "ssl_key_password=geheim",
    "ssl.key.pem=geheim",
    "pwd=geheim",
    "password1=geheim",
    "dbname=host%3Dh%20password%3Dgeheim",
    "dbname=postgresql%3A//u%3Ageheim%40h/d",
    "odbc_connect=DRIVER%3D%7Bx%7D%3BUID%3Du%3BPWD%3Dgeheim",
)
"""How a URL's query may hold a secret: names that libpq, the drivers of MySQL and Oracle, and ODBC know."""

URLS = (
    "postgresql://u:geheim@h/d",
    "postgresql+psycopg://:geheim@h/d",
    "postgresql://u:gehe%40geheim@h:5432/d",
    "postgresql://u:a/geheim@h/d",
    "postgresql://u:a@geheim@h/d",
    "postgresql://u:a?geheim@h/d",
    "postgresql://u:geheim@[::1]:5432/d",
    f"postgresql://u:{'%C3%A4' * 400}geheim@h/d",
    "mysql+pymysql://u:geheim@h/d?charset=utf8mb4",
    "oracle+oracledb://scott/geheim@h:1521/?service_name=x",
    *(f"postgresql+psycopg://u@h/d?{query}" for query in QUERIES),
)
WORDS = (
    *(f"connection to {url} failed" for url in URLS),
    *(f'connection to "{url}" failed' for url in URLS),
    "host=h password=geheim user=u",
    "host=h password='geheim geheim' user=u",
    r"host=h password='geheim\' geheim'",
    "password = geheim",
    "password='geheim, and it breaks off",
    '{"user": "u", "password": "geheim"}',
    "{'user': 'u', 'password': 'geheim geheim'}",
    'Connection(user="u", password="geheim")',
    "DRIVER={x};SERVER=h;UID=u;PWD=geheim",
    "DRIVER={x};PWD={geheim;geheim};UID=u",
    "jdbc:gbasedbt-sqli://h:9088/d:GBASEDBTSERVER=s;user=u;password=geheim",
    "authorization: Bearer geheim",
    "Authorization: Basic geheim",
    "sasl.password=geheim",
    "sasl.jaas.config=PlainLoginModule required username=u password=geheim;",
    "scott/geheim@h is no address: oracle://scott/geheim@h",
)
HARMLESS = (
    "postgresql+psycopg://idm@db/app?sslmode=verify-full&sslrootcert=/etc/ca.pem&passfile=/run/pgpass&sslkey=k.pem",
    "ssl.key.location=/run/key.pem ssl.certificate.pem=MIIC",
    "sqlite:///app.db",
    'password authentication failed for user "idm"',
    "http://127.0.0.1:8080/xds answered 500: write to admin@example.org.",
    "table_key 'idu=1+name=x', column 3: a value is missing.",
    "No database is named. Use --database URL or --config FILE, or set EVENTLOG_DATABASE.",
    "output.sasl, output.user and output.password belong together; one of them is missing.",
)
TERMINAL = "\x1b]0;taken\x07\x1b[2J\x9b31m\x7f\r\b\u202etxet\u2028\nnew line\u2066"


@pytest.mark.parametrize("text", WORDS)
def test_no_spelling_of_a_secret_gets_through(text: str) -> None:
    found = mask_secrets(text)
    if text.startswith("scott/"):  # before the URL nothing says that it is one
        found = found.partition(": ")[2]
    assert "geheim" not in found
    assert "***" in found
    assert mask_secrets(found) == found


@pytest.mark.parametrize("url", URLS)
def test_a_url_is_shown_without_its_secrets(url: str) -> None:
    assert "geheim" not in make_readable_url(url)
    assert make_readable_url(read_url(url)) == make_readable_url(url)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert make_readable(text) == text


@given(st.text(), st.sampled_from(["password", "sslpassword", "passwd", "PWD", "client_secret"]), st.text("abc%+"))
def test_behind_a_name_a_secret_is_hidden_whatever_stands_around(before: str, name: str, after: str) -> None:
    assert "geheim" not in mask_secrets(f"{before}?{name}=geheim{after}&x=1")


@given(st.text())
def test_what_is_shown_obeys_no_terminal_and_is_shown_the_same_again(text: str) -> None:
    found = make_readable(text)
    assert not [sign for sign in found if sign < " " or "\x7f" <= sign <= "\x9f"]
    assert visible(found) == found


@pytest.mark.parametrize(
    "text", ["://a:", "?a=", "?", "password=", "' password='", "a ", "&a=%41", ":", "\x1b", "=%%", "://a:@"]
)
def test_a_long_text_takes_time_by_its_length_alone(text: str) -> None:
    assert seconds(lambda: make_readable(text * (100_000 // len(text)) + "://=")) < 5


def test_an_error_holds_no_secret_and_no_command_to_a_terminal() -> None:
    error = SinkError(f"it says {TERMINAL} of postgresql://u:geheim@h/d", hint=f"password=geheim {TERMINAL}")
    for said in (error, copy.deepcopy(error)):
        words = f"{said} {said.message} {said.hint} {said.args}"
        assert "geheim" not in words
        assert words.isprintable()
    assert "\\x1b[2J" in str(error)


@pytest.mark.parametrize("style", ["console", "json"])
def test_the_journal_holds_neither(style: str) -> None:
    stream = io.StringIO()
    told = journal("json" if style == "json" else "console", stream=stream)
    told.warning("failed", error=TERMINAL, more={"password": "x", TERMINAL: [f"password=geheim {TERMINAL}"]})
    told.info("started", at="postgresql+psycopg://idm@db/app?password=geheim&sslpassword=geheim")
    assert "geheim" not in stream.getvalue()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)
    if style == "json":
        assert json.loads(lines[0])["error"] == TERMINAL  # a program gets what was said


def test_what_a_module_of_ours_notices_is_not_said_to_be_a_librarys() -> None:
    told = io.StringIO()
    journal("json", stream=told)
    assert logging.lastResort is not None
    logging.lastResort.handle(
        logging.LogRecord("eventlog.publisher.restored", logging.WARNING, "", 1, "gone", (), None)
    )
    record = json.loads(told.getvalue())
    assert (record["action"], record["said"]) == ("noticed", "gone")


@pytest.mark.parametrize("style", ["console", "json"])
def test_what_libraries_say_is_a_record_and_harmless(style: Style) -> None:
    told = io.StringIO()
    journal(style, stream=told)
    assert logging.lastResort is not None
    for trouble in (None, (ValueError, ValueError("no\nroute"), None)):
        record = logging.LogRecord("urllib3", logging.WARNING, "", 1, "%s password=geheim", (TERMINAL,), trouble)
        logging.lastResort.handle(record)
    lines = told.getvalue().splitlines()
    assert all(line.isprintable() and "library" in line and "geheim" not in line for line in lines)
    assert ["no route" in line for line in lines] == [False, True]


@pytest.mark.parametrize(
    "output, name",
    [
        (
            DatabaseOutput(url="postgresql+psycopg://u:p@h:5432/d"),
            "database postgresql+psycopg://u:***@h:5432/d  eventlog",
        ),
        (
            DatabaseOutput(url="postgresql+psycopg://u@h/d?sslmode=require&options=-c%20x%3D1", schema="s", task="t"),
            "database postgresql+psycopg://u@h/d?options=-c+x%3D1&sslmode=require s t",
        ),
        (DatabaseOutput(url="sqlite:///a.db"), "database sqlite:///a.db  eventlog"),
        (HttpOutput(url="https://h:8443/a@b/c?token=geheim"), "http https://h:8443/a@b/c"),
    ],
)
def test_the_name_of_an_output_is_what_it_was(output: DatabaseOutput | HttpOutput, name: str) -> None:
    assert name_of(output) == name


def test_a_note_about_a_row_holds_no_secret() -> None:
    outcome = Outcome(position=(1,), status=Status.ERROR, reason=Reason.REFUSED, note="dsn: host=h password=geheim")
    assert note_of(outcome) == "dsn: host=h password=***"


def test_a_library_speaks_without_them_too(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="eventlog"):
        library_journal().info("started", at="postgresql://u@h/d?password=geheim", error=TERMINAL)
    [record] = caplog.records
    assert record.__dict__["at"] == "postgresql://u@h/d?password=***"
    assert record.__dict__["error"].isprintable()


@pytest.mark.parametrize("query", QUERIES)
def test_the_name_of_an_output_holds_no_secret(query: str) -> None:
    name = name_of(DatabaseOutput(url=f"postgresql+psycopg://u:geheim@h/d?{query}"))
    assert "geheim" not in name
    other = query.replace("geheim", "anders").replace("geh%65im", "anders")
    assert name == name_of(DatabaseOutput(url=f"postgresql+psycopg://u:anders@h/d?{other}")), (
        "a new password, the same place"
    )
