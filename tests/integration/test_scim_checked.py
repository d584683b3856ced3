"""What `eventlog check` says of a SCIM server and of what is mapped to it; the commands that it names are run as they stand."""

from __future__ import annotations

import datetime as dt
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, create_engine

from eventlog.capture.track import track, untrack
from eventlog.check.examine import check
from eventlog.check.point import PointLevel
from eventlog.cli.main import main
from eventlog.config.settings import Config
from eventlog.tracked.options import Style, TriggerOptions
from tests.integration.publishing import publish_all
from tests.integration.scim_people import given
from tests.integration.test_entra import config_of as entra_config
from tests.support.entra import entra
from tests.support.scim import ends, judge, run, scim_config, scim_site, told, wanted


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = create_engine(f"sqlite:///{tmp_path}/source.db")
    yield made
    made.dispose()


def problems(engine: Engine, url: str, **output: Any) -> list[str]:
    config = scim_config(engine, url, **output)
    found = check(lambda: config, lambda: dt.datetime.now(dt.UTC).replace(tzinfo=None))
    return [f"{point.name}: {point.said} {point.mend}" for point in found if point.level is not PointLevel.OK]


def obey(engine: Engine, config: Config) -> str:
    """Run the command that the only finding about a mapping names; return the finding."""
    found = check(lambda: config, lambda: dt.datetime.now(dt.UTC).replace(tzinfo=None))
    [point] = [point for point in found if point.name == "mapping" and point.level is not PointLevel.OK]
    [command] = re.findall("`(eventlog [^`]+)`", point.mend or "")
    url = engine.url.render_as_string(hide_password=False)
    answer = CliRunner().invoke(main, shlex.split(command)[1:], env={"EVENTLOG_DATABASE": url})
    assert answer.exit_code == 0, answer.output
    return point.said


def test_a_check_finds_what_a_mapping_names_and_is_not_there(engine: Engine) -> None:
    with judge() as server:
        given(engine)
        assert not [one for one in problems(engine, server.url) if "weak" not in one and "secret" not in one]
        columns = {"login": "userName", "firstname": "name.givenName"}
        mapping = {"tables": {"usr": {"columns": columns}, "usrs": {"columns": {"login": "userName"}}}}
        [column, table] = [one for one in problems(engine, server.url, scim=mapping) if one.startswith("mapping")]
        assert "usr.columns has firstname" in column
        assert "fname" in column
        assert "has usrs, and there is no such table" in table
        # A policy may have called it so.
        renamed: dict[str, Any] = {"scim": {"tables": {"usr": {"columns": columns}}}}
        renamed["steps"] = [{"do": "rename", "classes": ["usr"], "attributes": {"fname": "firstname"}}]
        assert not [one for one in problems(engine, server.url, **renamed) if one.startswith("mapping")]


def test_a_check_finds_a_reference_to_a_key_of_several_columns(engine: Engine) -> None:
    """Nothing names an object by two columns, so each row would end E."""
    with judge() as server:
        given(engine)
        run(
            engine,
            "CREATE TABLE desk (room INTEGER NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (room, place))",
            "CREATE TABLE badge (idb INTEGER PRIMARY KEY, nick TEXT, desk INTEGER, FOREIGN KEY (desk) REFERENCES desk (room))",
        )
        track(engine, ["badge"], TriggerOptions())
        columns = {"nick": "userName", "desk": {"path": "nickName", "references": "desk"}}
        mapping = {"tables": {"badge": {"columns": columns}, "desk": {"columns": {"place": "userName"}}}}
        found = problems(engine, server.url, scim=mapping)
        assert [
            one
            for one in found
            if "output.scim.tables.badge: desk references desk, whose key has several columns" in one
        ]


def test_a_check_finds_an_id_of_entra_that_is_not_the_key(engine: Engine) -> None:
    with entra() as service:
        scim_site(engine)
        mapping = {"mode": "entra", "tables": {"usr": {"delete": "disable", "columns": {"login": "externalId"}}}}
        config = entra_config(engine, service, scim=mapping)
        found = check(lambda: config, lambda: dt.datetime.now(dt.UTC).replace(tzinfo=None))
        [point] = [point for point in found if point.name == "mapping"]
        assert point.level is not PointLevel.OK
        assert "login goes to externalId and is not in the key of usr" in point.said


def test_a_check_shows_the_token_where_it_matters(engine: Engine) -> None:
    """What a server can do it tells to anybody."""
    with judge() as server:
        given(engine)
        [wrong] = [one for one in problems(engine, server.url, authorization="Bearer another") if "401" in one]
        assert "authorization" in wrong
        [wrong] = [one for one in problems(engine, f"{server.url}/Users") if "404" in one]
        assert "`url`" in wrong


def test_a_check_names_a_mapped_table_that_is_not_tracked_and_the_command(engine: Engine) -> None:
    with judge() as server:
        scim_site(engine)
        untrack(engine, ["grp"])
        config = scim_config(engine, server.url)
        assert "grp, which is not tracked" in obey(engine, config)
        run(engine, "INSERT INTO usr (idu, login) VALUES (1, 'ada')", "INSERT INTO grp VALUES (1, 'staff')")
        run(engine, "INSERT INTO usr_grp VALUES (1, 1)")
        publish_all(config)
        assert server.members("staff") == {"ada"}
        assert not [one for one in problems(engine, server.url) if one.startswith("mapping")]


@pytest.mark.parametrize(
    "options, left_out",
    [
        (TriggerOptions(exclude=("mail", "room"), children=("usr_phone",)), "mail, room"),
        (TriggerOptions(exclude=("usr_phone.phone",), children=("usr_phone",)), "usr_phone.phone"),
        (
            TriggerOptions(
                columns=("login", "fname", "lname", "mail", "room", "number", "boss", "usr_phone.phone"),
                children=("usr_phone",),
                style=Style.FIELD,
            ),
            "works",
        ),
        (TriggerOptions(), "usr_phone.phone"),
    ],
    ids=["excluded", "of a child table", "not chosen", "a child table that is not tracked"],
)
def test_a_check_names_mapped_columns_that_are_not_logged_and_the_command(
    engine: Engine, options: TriggerOptions, left_out: str
) -> None:
    with judge() as server:
        scim_site(engine)
        untrack(engine, ["usr"])
        track(engine, ["usr"], options)
        config = scim_config(engine, server.url)
        assert f"usr.columns has {left_out}, which usr" in obey(engine, config)
        run(engine, "INSERT INTO usr VALUES (1, 'ada', 'Ada', 'Love', 'a@b', 'R1', 7, NULL, 0)")
        run(engine, "INSERT INTO usr_phone VALUES (1, '123')")
        publish_all(config)
        assert told(server) == wanted(engine)
        assert not [one for one in problems(engine, server.url) if one.startswith("mapping")]


@pytest.mark.parametrize("style", ["image", "field", "field-replace"])
def test_a_check_names_a_style_that_tells_bulk_upload_too_little_and_the_command(engine: Engine, style: str) -> None:
    with entra() as service:
        scim_site(engine, style)
        config = entra_config(engine, service)
        assert "usr_phone.phone, of which the receiver takes all values together" in obey(engine, config)
        run(engine, "INSERT INTO usr (idu, login) VALUES (1, 'ada@example.com')")
        run(engine, "INSERT INTO usr_phone VALUES (1, '123')")
        run(engine, "INSERT INTO usr_phone VALUES (1, '124')")
        publish_all(config)
        service.process()
        publish_all(config)
        assert not ends(engine)
        assert service.users["1"]["phoneNumbers"] == [{"value": "123"}, {"value": "124"}]
