"""Conversions that mark, beside a publisher: what they converted, and how they die at any point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import pytest
from pyarrow import parquet

from eventlog.convert import commit
from eventlog.convert.commit import SUCCESS
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.convert.identity import complete
from eventlog.convert.local import convert
from eventlog.convert.marks import Marked, can_be_marked, marking, waits_for_marks
from eventlog.convert.place import ConversionPlace
from eventlog.convert.settings import Conversion, LogInput
from eventlog.core.errors import SourceError
from eventlog.durable_files import flush, write_file
from eventlog.sql.log import Log
from tests.publisher.scene import Scene


class Killed(BaseException):
    """The process dies; nothing that handles errors handles it."""


class Death:
    """Lets a process die at the point with this number; afterwards it does nothing more, and says no word."""

    def __init__(self, number: int = 0) -> None:
        self.left = number
        self.is_dead = False

    def point(self) -> None:
        self.left -= 1
        self.is_dead = self.is_dead or self.left == 0
        if self.is_dead:
            raise Killed

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function with a point before and one after it."""

        def done(*given: Any, **named: Any) -> Any:
            self.point()
            found = work(*given, **named)
            self.point()
            return found

        return done


@contextmanager
def dying(number: int) -> Iterator[Death]:
    """Run as a process with a point before and after each transaction, and before and after each file appears."""
    death, transaction, anything = Death(number), ConversionPlace.transaction, Log.transaction

    @contextmanager
    def in_journal(self: Any, **named: Any) -> Iterator[Any]:
        with transaction(self, **named) as found:
            yield found
            death.point()
        death.point()

    @contextmanager
    def of_the_living(self: Any, **named: Any) -> Iterator[Any]:
        if death.is_dead:
            # Of a thread that died with its process nobody is told; pytest would tell of each thread that ends by an error.
            raise Killed if current_thread() is main_thread() else SourceError("The process has died.")
        with anything(self, **named) as found:
            yield found

    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(ConversionPlace, "transaction", in_journal)
        patch.setattr(Log, "transaction", of_the_living)
        patch.setattr(commit, "flush", death.around(flush))
        patch.setattr(commit, "write_file", death.around(write_file))
        patch.setattr(commit.Destination, "discard", death.around(commit.Destination.discard))
        yield death


def order(scene: Scene, out: Path, *, marks: bool = True, **more: Any) -> Conversion:
    url = scene.log.engine.url.render_as_string(hide_password=False)
    return Conversion(input=LogInput(url=url, mark=marks), destination=out, **more)


def ordered(conversion: Conversion) -> Marked | None:
    """Convert as the command does; return None if there is nothing to do, or nothing to mark."""
    source = conversion.input
    assert isinstance(source, LogInput)
    if not source.mark:
        convert(conversion, jobs=1)
        return None
    can_be_marked(source)
    if waits_for_marks(conversion):
        with marking(conversion) as place:
            return place.finish()
    if complete(conversion) is not None:
        return None
    with marking(conversion) as place:
        convert(conversion, jobs=1, marking=place)
        return place.finish()


@contextmanager
def publisher_stopped(scene: Scene) -> Iterator[None]:
    """Leave the publisher's lock for the block, then take it again, also from one that died with it."""
    scene.lock.leave()
    yield
    scene.table.run("DELETE FROM event_log_mark WHERE name = 'publisher'")
    assert scene.lock.take()
    scene.journal.serve([(name, ()) for name in scene.receivers])


def convert_alone(scene: Scene, out: Path, **more: Any) -> Marked | None:
    """Convert while the publisher is stopped."""
    with publisher_stopped(scene):
        return ordered(order(scene, out, **more))


def converted(out: Path) -> list[int]:
    """Return the rows a complete conversion has published."""
    if not (out / SUCCESS).exists():
        return []
    rows = parquet.read_table(out / OUTCOMES_FILE).to_pylist()
    return [row["position"] for row in rows if row["status"] == "S"]
