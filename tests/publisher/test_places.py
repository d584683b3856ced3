"""A log is published only with every output that has a place in it, or with those that nobody has paused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine

import eventlog.daemon.look
from eventlog.care.outputs import forget, pause
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.convert.local import convert
from eventlog.convert.marks import marking
from eventlog.core.errors import ConfigError, OccupiedError
from eventlog.daemon.log_session import Post
from eventlog.daemon.look import look
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from tests.publisher.converting import order, publisher_stopped
from tests.publisher.scene import Scene, decider_without_tables


@contextmanager
def publisher_of(scene: Scene, folder: Path, *names: str) -> Iterator[Publisher]:
    with Publisher(configuration(scene, folder, *names)) as publisher:
        yield publisher


def configuration(scene: Scene, folder: Path, *names: str) -> Config:
    url = scene.log.engine.url.render_as_string(hide_password=False)
    outputs = tuple(FilesOutput(name=name, path=str(folder / name)) for name in names)
    return Config(source=SourceConfig(url=url), publisher=PublisherConfig(lease=0.5), output=outputs)


def places(scene: Scene) -> list[str]:
    return [str(name) for (name,) in scene.ask("SELECT name FROM event_log_output ORDER BY name")]


@pytest.fixture
def scene(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(Post, "_new_decider", decider_without_tables)
    monkeypatch.setattr(eventlog.daemon.look, "decider_of", decider_without_tables)
    scene = Scene(sqlite, "one", "two")
    scene.write(1, 3)
    scene.lock.leave()
    return scene


def test_who_leaves_a_place_out_gets_no_lock_and_learns_the_three_ways(scene: Scene, tmp_path: Path) -> None:
    with publisher_of(scene, tmp_path, "one", "peek") as publisher, pytest.raises(ConfigError) as refused:
        publisher.run_once()
    assert "has a place for two, and this configuration has one, peek alone" in refused.value.message
    hint = refused.value.hint or ""
    assert all(way in hint for way in ("outputs pause", "outputs forget", "--config", "run --look"))
    assert refused.value.exit_code == 78
    assert (scene.waiting(), places(scene)) == ([1, 2, 3], ["one", "two"])
    assert scene.ask("SELECT 1 FROM event_log_mark WHERE name = 'publisher' AND value LIKE '% %'") == []


def test_an_output_that_was_forgotten_and_comes_again_was_not_restored(scene: Scene, tmp_path: Path) -> None:
    with publisher_of(scene, tmp_path, "one", "two") as publisher:
        publisher.run_once()
    forget(scene.log, "two", ["one"], by="ann")
    scene.write(4, 5)
    with publisher_of(scene, tmp_path, "one", "two") as publisher:
        publisher.run_once()
    assert len([*tmp_path.glob("two/*.xml")]) == 5
    assert scene.ask("SELECT warning FROM event_log_output WHERE warning IS NOT NULL") == []


@pytest.mark.parametrize("way", ["pause", "forget", "name"])
def test_each_way_lets_it_go_on(scene: Scene, tmp_path: Path, way: str) -> None:
    if way == "pause":
        pause(scene.log, "two", ["one"], by="ann")
    if way == "forget":
        forget(scene.log, "two", ["one"], by="ann")
    names = ["one", "two"] if way == "name" else ["one"]
    with publisher_of(scene, tmp_path, *names) as publisher:
        publisher.run_once()
    assert len([*tmp_path.glob("one/*.xml")]) == 3
    assert scene.waiting() == ([1, 2, 3] if way == "pause" else [])


def test_a_standby_says_so_at_once(scene: Scene, tmp_path: Path) -> None:
    with publisher_of(scene, tmp_path, "one", "two") as holder, publisher_of(scene, tmp_path, "one") as other:
        holder.run_once()
        with pytest.raises(ConfigError, match="has a place for two"):
            next(iter(other.rounds()))
        with publisher_of(scene, tmp_path, "one", "two") as right, pytest.raises(OccupiedError):
            right.run_once()


def test_a_conversion_says_which_outputs_do_not_get_what_it_marks(scene: Scene, tmp_path: Path) -> None:
    pause(scene.log, "two", ["two"], by="ann")
    conversion = order(scene, tmp_path / "out")
    with marking(conversion) as place:
        convert(conversion, jobs=1, marking=place)
        marked = place.finish()
    assert (marked.kept_for, marked.passed) == (("two",), ("one",))
    assert scene.waiting() == [1, 2, 3]


def test_a_conversion_that_was_interrupted_keeps_nobody_from_the_lock(scene: Scene, tmp_path: Path) -> None:
    conversion = order(scene, tmp_path / "out")
    scene.lock.take()
    with publisher_stopped(scene), marking(conversion) as place:
        convert(conversion, jobs=1, marking=place)  # and nobody comes to mark its rows
    scene.lock.leave()
    assert len(places(scene)) == 3
    with publisher_of(scene, tmp_path, "one", "two") as publisher:
        publisher.run_once()
    assert scene.waiting() == [1, 2, 3], "its rows are reserved"


def test_look_shows_documents_and_writes_nothing(scene: Scene, tmp_path: Path) -> None:
    before = [scene.ask(f"SELECT * FROM event_log{table}") for table in ("", "_output", "_mark", "_planned")]
    shown = {
        output.name: [document.id for document in documents]
        for output, documents, _ in look(configuration(scene, tmp_path, "one", "peek"), scene.log.engine)
    }
    assert {name: len(ids) for name, ids in shown.items()} == {"one": 3, "peek": 3}
    assert [scene.ask(f"SELECT * FROM event_log{table}") for table in ("", "_output", "_mark", "_planned")] == before
