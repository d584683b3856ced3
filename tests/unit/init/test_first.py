"""A first configuration: whatever is answered, it loads, says what was answered, and holds no secret."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL, make_url

from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import ConfigError, UsageError
from eventlog.init.first import SINKS, FirstAnswers, Sink, first_configuration, without_secrets
from tests.support.shares import met, shares

SECRETS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=8).filter(
    lambda text: "${" not in text
)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="$"), min_size=1, max_size=30)
FOLDERS = NAMES.filter(lambda name: name[0] != "~" and "\0" not in name)  # which the configuration refuses
PLACES: dict[Sink, str] = {
    "files": "out",
    "stdout": "",
    "http": "https://idm.example.net/xds",
    "database": "postgresql+psycopg://target:hunter22@db/warehouse",
    "kafka": "broker:9092",
}


def read(text: str, environment: dict[str, str] | None = None) -> Config:
    return from_settings(tomllib.loads(text), environment or {}, origin="first.toml")


@shares(files=0.05, others=0.2)
@given(st.sampled_from(SINKS), NAMES, st.none() | NAMES, st.lists(NAMES, max_size=3).map(tuple), FOLDERS, SECRETS)
def test_whatever_is_answered_is_in_force_and_no_secret_is_written(
    sink: Sink, log: str, schema: str | None, tables: tuple[str, ...], folder: str, password: str
) -> None:
    url = URL.create("postgresql+psycopg", "idm", password, "db", 5432, "app").render_as_string(hide_password=False)
    place = folder if sink == "files" else PLACES[sink]
    first = first_configuration(FirstAnswers(url=url, log=log, schema=schema, tables=tables, sink=sink, place=place))
    quoted = url.partition("idm:")[2].partition("@")[0]
    assert f"{quoted}@" not in first.text
    assert "hunter22" not in first.text
    assert first.names == ("DB_PASSWORD", *(["OUTPUT_PASSWORD"] if sink == "database" else []))
    config = read(first.text, {"DB_PASSWORD": password, "OUTPUT_PASSWORD": "hunter22"})
    assert make_url(config.source.url) == make_url(url)
    assert (config.source.log, config.source.schema) == (log, schema)
    [output] = config.output
    met(files=sink == "files", others=sink != "files")
    assert output.name == sink
    assert (
        place == ""
        or place in str([getattr(output, name, None) for name in ("path", "url", "servers")])
        or sink == "files"
    )
    assert sink != "files" or getattr(output, "path", None) == folder


@given(st.sampled_from(SINKS))
def test_what_stands_in_comments_is_right_too(sink: Sink) -> None:
    """Whoever takes the # away gets a file that loads; what is shown is the default, but for names that are examples."""
    text = first_configuration(FirstAnswers(url="sqlite:///app.db", sink=sink, place=PLACES[sink])).text
    opened = re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE)
    secrets = {"OUTPUT_PASSWORD": "hunter22"}
    before, after = read(text, secrets), read(opened, secrets)
    assert opened.count("\n# ") < text.count("\n# ")
    assert after.publisher == before.publisher == Config().publisher
    assert after.output == before.output
    assert (after.source.schema, after.source.user) == ("app", "publisher")


@pytest.mark.parametrize(
    "written, text, names",
    [
        ("postgresql://idm@db/app", "postgresql://idm@db/app", []),
        ("postgresql://idm:x1@db/app", "postgresql://idm:${PW}@db/app", ["PW"]),
        ("postgresql://db/app?user=a&password=x1", "postgresql://db/app?user=a&password=${PW}", ["PW"]),
        ("postgresql://a:x1@db/app?sslpassword=x2", "postgresql://a:${PW}@db/app?sslpassword=${PW_2}", ["PW", "PW_2"]),
        ("postgresql://a:${MINE}@db/app", "postgresql://a:${MINE}@db/app", ["MINE"]),
        ("postgresql://a:${file:/run/pw}@db/app", "postgresql://a:${file:/run/pw}@db/app", []),
        ("postgresql://idm:x 1\u3000@db/a b", "postgresql://idm:${PW}@db/a b", ["PW"]),
        ("oracle://scott/tiger@db", "oracle://scott/${PW}@db", ["PW"]),
    ],
)
def test_secrets_leave_their_names(written: str, text: str, names: list[str]) -> None:
    assert without_secrets(written, "PW") == text
    assert list(first_configuration(FirstAnswers(url=text, place="out")).names) == names


def test_a_secret_beside_one_that_is_named_is_refused() -> None:
    with pytest.raises(UsageError, match="write both as"):
        without_secrets("postgresql://a:${MINE}@db/app?sslpassword=x2", "PW")


def test_an_answer_that_cannot_be_used_is_refused_before_it_is_written() -> None:
    with pytest.raises(ConfigError, match="no address"):
        first_configuration(FirstAnswers(url="sqlite:///app.db", sink="http", place="ftp://example.net"))


def test_a_table_with_odd_letters_stays_in_its_comment() -> None:
    text = first_configuration(FirstAnswers(url="sqlite:///app.db", tables=("a\nb = 1", "usr"))).text
    assert "#   eventlog track 'a\\nb = 1' usr\n" in text


@pytest.mark.parametrize(
    "sink, place, images",
    [("files", "out", False), ("http", "https://example.net", False), ("kafka", "broker:9092", True)],
)
def test_whole_rows_are_advised_where_the_format_tells_them(sink: Sink, place: str, images: bool) -> None:
    text = first_configuration(FirstAnswers(url="sqlite:///app.db", sink=sink, place=place, tables=("usr",))).text
    assert ("eventlog track usr --events image\n" in text) is images


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(UsageError, match="no text in UTF-8"):
        first_configuration(FirstAnswers(url="sqlite:///app.db", place="out\udcff"))
