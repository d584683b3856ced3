"""Sinks and formats of other packages: found by their entry points, their keys checked as ours are, and built."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from eventlog.config.build import name_of, outputs_of
from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import ConfigError
from eventlog.core.points import OfferedValue, read_points
from eventlog.core.registry import Group, forget, names, offers, problem
from tests.support.plugins import Site, site

__all__ = ["site"]

SPOOL = """
    from eventlog.core.outputs import OutputKeys
    from eventlog.core.plugins import Need, SinkPlugin
    from eventlog.sinks.stdout import StdoutSink


    class Spool(OutputKeys, frozen=True, kw_only=True):
        queue: str
        password: str = ""
        priority: int = 0


    SPOOL = SinkPlugin(
        settings=Spool,
        build=lambda order: StdoutSink(),
        place=lambda output: f"spool {output.queue}",
        needs=lambda output: [Need("An output to a spool", "spoolpackage")] if output.priority == 9 else [],
    )
"""
CARDS = """
    from typing import Annotated

    from msgspec import Meta, Struct

    from eventlog.core.plugins import FormatPlugin
    from eventlog.xds.write import XdsFormat


    class Cards(Struct, frozen=True, kw_only=True):
        columns: int = 80
        width: Annotated[float, Meta(ge=1.0)] = 7.375

        def __post_init__(self):
            if self.columns == 13:
                raise ValueError("cards have no 13 columns.")


    CARDS = FormatPlugin(build=lambda order: XdsFormat(batch_size=order.settings.columns), settings=Cards)
"""


@pytest.fixture(autouse=True)
def _installed(site: Site) -> None:
    site.install("eventlog-spool", {"sinks": {"spool": "eventlog_spool:SPOOL"}}, SPOOL)
    site.install("eventlog-cards", {"formats": {"punched-cards": "eventlog_cards:CARDS"}}, CARDS)


def config_of(**output: Any) -> Config:
    return from_settings({"output": [output]}, {}, origin="my.toml")


def shown(output: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(output)
    return found


def refused(**output: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        config_of(**output)
    return str(caught.value)


def test_its_keys_are_read_and_it_is_built() -> None:
    config = config_of(sink="spool", queue="lp0", priority="3", name="printer")
    [output] = outputs_of(config)
    assert (config.output[0].sink, shown(config.output[0])["priority"], output.name) == ("spool", 3, "printer")
    assert output.format.suffix == ".xml"
    assert name_of(config_of(sink="spool", queue="lp0").output[0]) == "spool lp0"


@pytest.mark.parametrize(
    "output,said",
    [
        ({"sink": "spool"}, "my.toml: output[0] needs the key `queue`."),
        ({"sink": "spool", "queue": 3}, "my.toml: output[0].queue takes a text, not a whole number."),
        ({"sink": "spool", "quue": "x"}, "my.toml: output.quue is not a key. Did you mean queue?"),
        (
            {"sink": "spol"},
            (
                "my.toml: output[0].sink takes database, delta, files, http, iceberg, kafka, scim, spool, stdout, webhook."
                " Did you mean spool?"
            ),
        ),
        (
            {"sink": "spool", "queue": "x", "format": "change-tables"},
            "my.toml: output[0].format takes cloudevents, debezium, jsonl, messages, punched-cards, xds.",
        ),
        (
            {"sink": "files", "path": "out", "format": "punched-cards", "punched_cards": {"rows": 12}},
            "my.toml: output.punched_cards.rows is not a key. There are columns, width.",
        ),
        (
            {"sink": "files", "path": "out", "format": "punched-cards", "punched_cards": {"width": 0.5}},
            "my.toml: output[0].punched_cards.width takes a number, at least 1.0.",
        ),
        (
            {"sink": "files", "path": "out", "format": "punched-cards", "punched_cards": {"columns": 13}},
            "my.toml: output[0].punched_cards: cards have no 13 columns.",
        ),
    ],
)
def test_what_does_not_fit_is_refused_as_with_ours(output: dict[str, Any], said: str) -> None:
    assert refused(**output) == said


def test_one_that_is_broken_is_a_sentence_and_leaves_the_others_standing(site: Site) -> None:
    site.install("eventlog-broken", {"sinks": {"broken": "eventlog_broken:SINK"}}, "import no_such_module")
    site.install("eventlog-odd", {"sinks": {"odd": "eventlog_odd:SINK"}}, "SINK = 3")
    assert {"broken", "odd", "spool", "stdout", "webhook"} <= {*names("sinks")}
    assert {offer.name: problem(offer) for offer in offers("sinks") if problem(offer)} == {
        "broken": "The sink broken of the package eventlog-broken 1.0 cannot be loaded: "
        "ModuleNotFoundError: No module named 'no_such_module'.",
        "odd": "The sink odd of the package eventlog-odd 1.0 cannot be used: it is of the type int, and not SinkPlugin.",
    }
    assert config_of(sink="spool", queue="x").output
    assert refused(sink="broken").startswith("The sink broken of the package eventlog-broken 1.0 cannot be loaded")
    assert refused(path="out") == "my.toml: output[0] needs the key `sink`: " + ", ".join(names("sinks")) + "."


@pytest.mark.parametrize("kind, group", [("Format", "formats"), ("Source", "sources")])
def test_settings_that_can_be_changed_are_refused_with_the_package(kind: str, group: Group, site: Site) -> None:
    others = {"Format": "", "Source": ", marks=str, title='odd'"}[kind]
    text = f"""
        from msgspec import Struct
        from eventlog.plugins import {kind}Plugin

        class Odd(Struct):
            rows: int = 1

        ODD = {kind}Plugin(build=str, settings=Odd{others})
    """
    site.install("eventlog-odd", {group: {"odd": "eventlog_odd:ODD"}}, text)
    [said] = [problem(offer) for offer in offers(group) if offer.name == "odd"]
    assert said is not None
    assert said.endswith("1.0 cannot be loaded: TypeError: the settings Odd must be frozen=True.")


def test_a_name_that_two_offer_is_nobodys_and_ours_stays_ours(site: Site) -> None:
    again = {"sinks": {"spool": "eventlog_again:SPOOL", "files": "eventlog_again:SPOOL"}}
    site.install("eventlog-again", again, SPOOL)
    assert refused(sink="spool", queue="x").startswith("The sink spool of the package")
    assert "offers that name too. Uninstall one of them." in refused(sink="spool", queue="x")
    assert type(config_of(sink="files", path="out").output[0]).__module__ == "eventlog.sinks.outputs"


def test_a_look_that_began_before_a_package_came_is_kept_for_nobody(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, going = threading.Event(), threading.Event()

    def read_slowly() -> Iterator[OfferedValue]:
        found = [*read_points()]
        read.set()
        assert going.wait(30)
        yield from found

    with monkeypatch.context() as slow:
        slow.setattr("eventlog.core.points.read_points", read_slowly)
        forget()
        looking = threading.Thread(target=names, args=("sinks",))
        looking.start()
        assert read.wait(30)
    site.install("eventlog-fax", {"sinks": {"fax": "eventlog_fax:FAX"}}, "FAX = 3")
    going.set()
    looking.join()
    assert "fax" in names("sinks")
