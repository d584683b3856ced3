"""Numbers of others in addresses, forms and on the command line: read, or refused in words, and never a fault."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from sqlalchemy import Engine

from eventlog.cli.main import exit_code
from eventlog.config.settings import load
from eventlog.core.errors import EX_DATA, EX_USAGE, ConfigError
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.web.server import PageServer
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import url_of
from tests.web.visiting import Visit, watched

ODD = (
    "99999999999999999999999",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "-1",
    "-0",
    "9" * 5000,
    "٣",
    "２",
    "²",
    "1e3",
    "0x10",
    "1_0",
    " 2",
    "2 ",
    "1.5",
    "NaN",
    "\0",
    "é",
)


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return watched(engine)


def test_a_number_that_no_row_has_is_not_found(page: PageServer) -> None:
    visit = Visit(page)
    for odd in ODD:
        answer = visit.get(f"/rows/{quote(odd)}")
        assert (odd, answer.status) == (odd, 404)
        assert "x-frame-options" in answer.headers
    assert visit.get("/rows/2").status == 200


def test_lists_and_acts_read_what_they_can(page: PageServer, log: LogTable) -> None:
    visit = Visit(page)
    proof = visit.get("/confirm?action=hold&id=2").proof
    for odd in ODD[:9]:
        asked = quote(odd)
        for query in (f"before={asked}", f"place={asked}"):
            assert (odd, query, visit.get(f"/rows?{query}").status) == (odd, query, 200)
        assert (odd, visit.get(f"/rows/2?done=hold+{asked}").status) == (odd, 200)
        assert visit.get(f"/confirm?action=hold&id={asked}").status in (200, 400)
        assert visit.post("/act", {"action": "hold", "id": odd, "proof": proof}).status in (303, 400)
    assert log.statuses()[2] == "N"


@pytest.mark.parametrize("name", ["status", "reason", "table", "key", "text"])
def test_texts_that_no_database_takes_find_nothing_or_everything(page: PageServer, name: str) -> None:
    for odd in ("\0", "a\0b", "%ED%A0%80", "%FF", "'", "%25", "\u202e", "x" * 9000):
        assert Visit(page).get(f"/rows?{name}={quote(odd, safe='%')}").status == 200


@pytest.mark.parametrize("odd", [odd for odd in ODD if odd[0] not in "-\0"])
def test_commands_refuse_numbers_in_words(sqlite: Engine, odd: str, capsys: pytest.CaptureFixture[str]) -> None:
    watched(sqlite)
    site = ["--database", url_of(sqlite)]
    readable = odd.strip() in ("2", "２", "٣", "1_0", "9223372036854775807")
    for command in (["explain", odd], ["hold", odd], ["release", odd], ["requeue", odd], ["log", "--limit", odd]):
        code = exit_code([*command, *site])
        said = capsys.readouterr().err
        assert code in ((0, EX_DATA, EX_USAGE) if readable else (EX_USAGE, EX_DATA)), (command[0], said)
        assert "fault of eventlog" not in said
    assert exit_code(["purge", "--older-than", f"{odd}w", "--yes", *site]) == (
        EX_USAGE if odd not in (" 2", "2 ") else 0
    )


@pytest.mark.parametrize("age", ["999999999w", "1000000d"])
def test_an_age_beyond_all_calendars_is_refused(engine: Engine, age: str) -> None:
    watched(engine)
    assert exit_code(["purge", "--older-than", age, "--database", url_of(engine)]) == EX_USAGE


@pytest.mark.parametrize("odd", ["9" * 5000, "²", "99999999999999999999999"])
def test_settings_refuse_numbers_in_words(odd: str) -> None:
    for key in ("PUBLISHER__BATCH_SIZE", "PUBLISHER__POLLING_INTERVAL", "SOURCE__STATEMENT_TIMEOUT"):
        with pytest.raises(ConfigError):
            load(None, {f"EVENTLOG_{key}": odd})
    with pytest.raises(ConfigError):
        GBaseSettings(tables={odd: "a.b"})
