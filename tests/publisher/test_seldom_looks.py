"""Who looks seldom whether rows wait asks for them alone, and publishes nothing that was held meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, event

from eventlog.care.journal import hold, release
from eventlog.publisher import reader
from tests.publisher.scene import Scene


@pytest.fixture
def scene(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A log of which all is published, and in which each look is a seldom one."""
    monkeypatch.setattr(reader, "SELDOM_SECONDS", 0.0)
    made = Scene(sqlite, "one", askable=True)
    made.write(1, 3)
    made.publish()
    return made


@pytest.fixture
def asked(sqlite: Engine) -> Iterator[list[str]]:
    """The statements that are run."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(sqlite, "before_cursor_execute", note)
    yield statements
    event.remove(sqlite, "before_cursor_execute", note)


def look(scene: Scene) -> bool:
    with scene.log.transaction() as connection:
        return scene.journal.anything(connection)


def test_a_seldom_look_that_finds_nothing_asks_one_thing(scene: Scene, asked: list[str]) -> None:
    look(scene)
    del asked[:]
    assert not look(scene)
    assert len(asked) == 1


def test_rows_that_are_held_before_a_seldom_look_are_not_published(scene: Scene) -> None:
    look(scene)
    scene.write(4, 5)
    with scene.log.transaction() as connection:
        hold(connection, scene.log, [(4, 4)], "")
    assert look(scene)
    scene.publish()
    assert scene.waiting() == [4]


def test_rows_that_are_held_after_a_seldom_look_are_not_published(scene: Scene) -> None:
    look(scene)
    scene.write(4, 5)
    assert look(scene)
    with scene.log.transaction() as connection:
        hold(connection, scene.log, [(4, 4)], "")
    scene.publish()
    assert scene.waiting() == [4]


def test_released_rows_are_seen_within_a_second(scene: Scene) -> None:
    scene.write(4, 4)
    with scene.log.transaction() as connection:
        hold(connection, scene.log, [(4, 4)], "")
    scene.publish()
    assert not look(scene)
    with scene.log.transaction() as connection:
        release(connection, scene.log, [(4, 4)])
    scene.journal._stamped -= 1.0  # a second is over
    assert look(scene)
