"""The exported configuration of a commercial driver: what is taken, what is said, and what cannot be read."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.cli.main import exit_code
from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import DataError, UsageError
from eventlog.init.driver import NO_COUNTERPART, read_driver
from eventlog.policies.steps import Rename

ELEMENTS = """\
<driver-configuration name="JDBC">
  <authentication-info>
    <server>jdbc:postgresql://db.example.net:5433/app?ssl=true</server><user>idm</user><password>hunter22</password>
  </authentication-info>
  <driver-options>
    <sync-filter display-name="Synchronization filter">schema</sync-filter>
    <sync-schema display-name="Schema">indirect</sync-schema>
    <time-syntax>2</time-syntax>
    <state-dir>.</state-dir>
    <use-single-connection>no</use-single-connection>
  </driver-options>
  <publisher-options>
    <log-table>indirect_process</log-table>
    <allow-loopback>yes</allow-loopback>
    <delete-from-log>0</delete-from-log>
    <batch-size>16</batch-size>
    <query-limit/><!-- <batch-size>9</batch-size> --><?x y?>
    <polling-interval>30</polling-interval>
    <time-of-day>02:00:00, 14:30:00</time-of-day>
    <post-poll-stmt>CALL sweep(); DELETE FROM direct_process WHERE status = 'S'</post-poll-stmt>
    <pub-heartbeat-interval>5</pub-heartbeat-interval>
  </publisher-options>
  <attr-name-map>
    <class-name><nds-name>User</nds-name><app-name>indirect.usr</app-name></class-name>
    <attr-name class-name="User"><nds-name>Surname</nds-name><app-name>lname</app-name></attr-name>
  </attr-name-map>
</driver-configuration>
"""
DEFINITIONS = """\
<ds-object><configuration-values><definitions>
  <definition name="log-table" type="string"><value>DIRECT.EVENTLOG</value></definition>
  <definition name="sync-tables" type="string"><value>direct.view_usr; direct.view_grp</value></definition>
  <definition name="sync-filter" type="enum"><value>list</value></definition>
  <definition name="disable" type="boolean"><value>true</value></definition>
  <definition name="publication-mode" type="enum"><value>2</value></definition>
  <definition name="query-limit" type="integer"><value></value></definition>
</definitions></configuration-values>
<shim-auth-server>jdbc:oracle:thin:@ora.example.net:1521:ORCL</shim-auth-server><shim-auth-id>IDM</shim-auth-id></ds-object>
"""


def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, xml: str, *more: str) -> Config:
    """The configuration that the command writes."""
    monkeypatch.chdir(tmp_path)
    Path("driver.xml").write_text(xml)
    assert exit_code(["init", "--driver", "driver.xml", "--force", *more]) == 0
    return from_settings(tomllib.loads(Path("eventlog.toml").read_text()), {"DB_PASSWORD": "x"}, origin="it")


def test_options_with_a_counterpart_are_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = made(tmp_path, monkeypatch, ELEMENTS)
    source, publisher = config.source, config.publisher
    assert source.url == "postgresql+psycopg://idm:x@db.example.net:5433/app"
    assert (source.log, source.schema, source.user) == ("indirect.indirect_process", "indirect", "idm")
    assert (publisher.time_syntax, publisher.batch_size, publisher.query_limit) == (2, 16, 10_000)
    assert (publisher.polling_interval, publisher.heartbeat_interval) == (30, 5)
    assert publisher.time_of_day == ("02:00:00", "14:30:00")
    assert publisher.post_poll_statements == ("CALL sweep()", "DELETE FROM direct_process WHERE status = 'S'")
    assert (publisher.allow_loopback, publisher.delete_from_log) == (True, False)
    [policy] = config.policy
    assert config.output[0].policies == (policy.name,)
    assert Rename(classes=("indirect.usr",), class_name="User", attributes={"lname": "Surname"}) in policy.steps
    said = capsys.readouterr().err
    assert "state-dir: the state is beside the log" in said
    assert "use-single-connection: rows are marked" in said
    assert "Not taken: state-dir" in Path("eventlog.toml").read_text()
    assert "hunter22" not in said + Path("eventlog.toml").read_text()
    assert "eventlog track" not in said


def test_what_is_in_force_is_not_offered_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, monkeypatch, ELEMENTS)
    text = Path("eventlog.toml").read_text()
    assert "# batch_size" not in text
    assert "# on_error" in text


def test_definitions_are_read_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = made(tmp_path, monkeypatch, DEFINITIONS)
    assert config.source.url == "oracle+oracledb://IDM:x@ora.example.net:1521/ORCL"
    assert (config.source.log, config.source.schema) == ("DIRECT.EVENTLOG", None)
    assert config.source.tables == ("direct.view_usr", "direct.view_grp")
    assert config.publisher.time_syntax == 1  # the driver's default
    said = capsys.readouterr().err
    assert "publication-mode 2" in said
    assert "do not start it" in said


AS_EXPORTED = """\
<driver-configuration name="HR"><attributes>
  <shim-auth-id value="idm"/><shim-auth-server value="REMOTE(hostname=loader port=8090)jdbc:postgresql://~db.host~:5433/app"/>
  <shim-config-info-xml><driver-config>
    <publisher-options><configuration-values><definitions>
      <definition name="disable" type="enum"><value>0</value></definition>
      <gcv-ref driver-param-name="polling-interval" name="poll"/><gcv-ref driver-param-name="batch-size" name="nowhere"/>
    </definitions></configuration-values></publisher-options>
    <subscriber-options><configuration-values><definitions>
      <definition name="disable" type="enum"><value>1</value></definition>
      <definition name="time-of-day" type="string"><value>03:00</value></definition>
    </definitions></configuration-values></subscriber-options>
  </driver-config></shim-config-info-xml>
  <global-config-values><configuration-values><definitions>
    <definition name="poll" type="integer"><value>45</value></definition>
    <definition name="db.host" type="string"><value>db.example.net</value></definition>
  </definitions></configuration-values></global-config-values>
</attributes></driver-configuration>
"""


def test_an_export_has_values_in_attributes_and_in_one_place_for_all() -> None:
    """And its Subscriber has options of the same names: a disabled one says nothing of the Publisher."""
    found = read_driver(AS_EXPORTED.encode(), "driver.xml")
    assert found.url == "postgresql+psycopg://idm:${DB_PASSWORD}@db.example.net:5433/app"
    assert found.user == "idm"
    assert found.publisher == {"polling_interval": "45", "time_syntax": "1"}
    assert found.left == ("batch-size: its value is nowhere, a global configuration value that this file lacks",)


@pytest.mark.parametrize(
    "address, url",
    [
        ("jdbc:mysql://db/app?useSSL=true", "mysql+pymysql://idm:${DB_PASSWORD}@db/app"),
        ("jdbc:mariadb://db:3307/app", "mariadb+pymysql://idm:${DB_PASSWORD}@db:3307/app"),
        ("jdbc:oracle:thin:@//ora:1521/hr", "oracle+oracledb://idm:${DB_PASSWORD}@ora:1521/?service_name=hr"),
        ("jdbc:oracle:thin:@ora:1521/hr", "oracle+oracledb://idm:${DB_PASSWORD}@ora:1521/?service_name=hr"),
    ],
)
def test_addresses_become_urls(address: str, url: str) -> None:
    found = read_driver(f"<x><server>{address}</server><user>idm</user></x>".encode(), "driver.xml")
    assert found.url == url


def test_a_database_that_eventlog_does_not_know_needs_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("driver.xml").write_text(
        "<x><server>jdbc:jtds:sqlserver://db/app;password=hunter22</server><log-table>l</log-table></x>"
    )
    assert exit_code(["init", "--driver", "driver.xml"]) == UsageError.exit_code
    said = capsys.readouterr().err
    assert "Use --database URL" in said
    assert "hunter22" not in said
    assert exit_code(["init", "--driver", "driver.xml", "--database", "sqlite:///app.db"]) == 0


@pytest.mark.parametrize(
    "xml, said",
    [
        ("<nds/>", "no configuration of a JDBC driver"),
        ("<x><allow-loopback>maybe</allow-loopback></x>", "allow-loopback is 'maybe'"),
        ("<x><batch-size>many</batch-size></x>", "batch-size is 'many'"),
        ("<x><batch-size>1</batch-size>", "line 1"),
    ],
)
def test_what_cannot_be_read_is_said(xml: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_driver(xml.encode(), "driver.xml")


@given(st.sampled_from([*NO_COUNTERPART]))
def test_what_has_no_counterpart_is_named(option: str) -> None:
    found = read_driver(f"<x><{option}>1</{option}></x>".encode(), "driver.xml")
    assert found.left == (f"{option}: {NO_COUNTERPART[option]}",)
