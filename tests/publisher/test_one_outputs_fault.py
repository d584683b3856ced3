"""An error about a row is how the row ends; one about an output pauses that output, and the others go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

import eventlog.config.build
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import ConfigError, OutputError
from eventlog.core.model import Change, Document, Outcome
from eventlog.core.schema import Catalog
from eventlog.daemon.log_session import Post
from eventlog.daemon.publisher import Publisher
from eventlog.delivery.output import Output
from eventlog.sinks.outputs import FilesOutput
from eventlog.xds.write import XdsFormat
from tests.publisher.scene import Scene, ToldReceiver, decider_without_tables


class RaisingFormat(XdsFormat, frozen=True):
    """Fails with one value, or with everything."""

    bad: str = ""

    def writer(self, catalog: Catalog | None = None) -> Any:
        write = super().writer(catalog)

        def written(changes: Iterable[Change]) -> Iterator[Any]:
            for change in changes:
                if self.bad in str(change.edits):
                    raise ValueError("Exceeds the limit (4300 digits)")
                yield from write([change])

        return written


class RaisingReceiver(ToldReceiver):
    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        raise ZeroDivisionError("the plug-in divides")


def run(scene: Scene, *outputs: Output, **settings: Any) -> Publisher:
    """Run a publisher until every output had a turn without moving."""
    scene.lock.leave()
    url = scene.log.engine.url.render_as_string(hide_password=False)
    config = Config(source=SourceConfig(url=url), publisher=PublisherConfig(on_retry="object", **settings))
    with Publisher(config, outputs=list(outputs)) as publisher:
        for report in publisher.rounds():
            if not report.moved:
                quiet = [line for line in publisher._lines if line.rests or line.is_paused]
                if len(quiet) == len(publisher._lines):
                    publisher.stop()
    return publisher


def output(name: str, sink: Any = None, form: Any = None) -> Output:
    receiver: Any = sink or ToldReceiver()
    return Output(name=name, sink=receiver, format=form or XdsFormat())


def paused(scene: Scene) -> dict[str, str | None]:
    return dict(scene.ask("SELECT name, paused FROM event_log_output"))


@pytest.fixture
def scene(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(Post, "_new_decider", decider_without_tables)
    scene = Scene(sqlite)
    scene.write(1, 6)
    return scene


def test_a_value_that_a_format_fails_with_ends_its_row_alone(scene: Scene) -> None:
    good, bad = ToldReceiver(), ToldReceiver()
    run(scene, output("good", good), output("bad", bad, RaisingFormat(bad="value-4")))
    assert (good.came, bad.came) == ([1, 2, 3, 4, 5, 6], [1, 2, 3, 5, 6])
    assert scene.table.statuses() == {number: "E" if number == 4 else "S" for number in range(1, 7)}
    assert "ValueError: Exceeds the limit (4300 digits)" in str(scene.table.outcomes()[4])
    assert paused(scene) == {"good": None, "bad": None}


def test_a_format_that_fails_with_everything_pauses_its_output(scene: Scene) -> None:
    good = ToldReceiver()
    publisher = run(scene, output("good", good), output("bad", form=RaisingFormat()))
    assert good.came == [1, 2, 3, 4, 5, 6]
    why = paused(scene)["bad"] or ""
    assert why.startswith("since ")
    assert "by the publisher: ValueError: Exceeds the limit" in why
    assert scene.waiting() == [1, 2, 3, 4, 5, 6]
    assert publisher.vitals.reading().outputs["bad"].is_failing


def test_a_sink_that_fails_pauses_its_output(scene: Scene) -> None:
    good = ToldReceiver()
    run(scene, output("good", good), output("bad", RaisingReceiver()))
    assert good.came == [1, 2, 3, 4, 5, 6]
    assert "ZeroDivisionError: the plug-in divides" in (paused(scene)["bad"] or "")


def test_one_that_fails_alone_at_its_start_ends_the_publisher(scene: Scene) -> None:
    with pytest.raises(OutputError, match="the plug-in divides"):
        run(scene, output("bad", RaisingReceiver()))


def test_an_output_that_cannot_be_made_is_paused(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = eventlog.config.build._output

    def fail(settings: Any, config: Config) -> Output:
        if settings.name == "bad":
            raise RuntimeError("no such library")
        return make(settings, config)

    monkeypatch.setattr(eventlog.config.build, "_output", fail)
    outputs = tuple(FilesOutput(name=name, path=str(tmp_path / name)) for name in ("good", "bad"))
    run(scene, *eventlog.config.build.outputs_of(Config(output=outputs)))
    assert len([*tmp_path.glob("good/*.xml")]) == 6
    assert "RuntimeError: no such library" in (paused(scene)["bad"] or "")


def test_steps_that_do_not_fit_the_tables_give_their_output_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decider(*_: object) -> Any:
        made = decider_without_tables()
        made.faults = {"bad": ConfigError("Output bad: Step 1: name is no attribute.")}
        return made

    monkeypatch.setattr(Post, "_new_decider", decider)
    good, bad = ToldReceiver(), ToldReceiver()
    run(scene, output("good", good), output("bad", bad))
    assert (good.came, bad.came) == ([1, 2, 3, 4, 5, 6], [])
    assert "by the publisher: Output bad: Step 1: name is no attribute." in (paused(scene)["bad"] or "")
