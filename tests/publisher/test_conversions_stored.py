"""A conversion that marks, into an object store: killed at any point and given again, it loses nothing and doubles nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
from msgspec.structs import replace
from obstore.store import MemoryStore
from sqlalchemy import Engine

from eventlog.care import outputs
from eventlog.convert import free_rows
from eventlog.convert.commit import SUCCESS
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.convert.local import convert
from eventlog.convert.marks import marking, waits_for_marks
from eventlog.convert.place import name_conversion
from eventlog.convert.settings import Conversion
from eventlog.convert.stored import StoredConversion
from eventlog.core.errors import SinkError, UsageError
from eventlog.sinks.store.objects import Bucket
from eventlog.sinks.store.plans import StoredPlans
from tests.publisher.converting import Death, converted, dying, order, publisher_stopped
from tests.publisher.scene import Scene

REQUESTS = ("read", "put", "put_over", "copy", "remove")


def ordered(place: StoredConversion, conversion: Conversion) -> None:
    """Convert as the command does."""
    place.finish_former()
    if waits_for_marks(conversion, place):
        with marking(conversion, place) as marks:
            marks.finish()
    elif place.begin(conversion) is None:
        with marking(conversion, place) as marks:
            convert(replace(conversion, overwrite=False), jobs=1, marking=marks)
            place.publish(marks)
            marks.finish()
    place.discard()


@contextmanager
def dying_asking(number: int) -> Iterator[Death]:
    """Run as a process that may also die before and after each request to the store."""
    with dying(number) as death, pytest.MonkeyPatch.context() as patch:
        for name in REQUESTS:
            patch.setattr(Bucket, name, death.around(getattr(Bucket, name)))
        yield death


class Failure(Death):
    """A store that fails once, before a request or after it, at the point with this number."""

    def point(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise SinkError("The store is away.", may_pass=True)


@contextmanager
def failing(number: int) -> Iterator[Failure]:
    failure = Failure(number)
    with pytest.MonkeyPatch.context() as patch, suppress(SinkError):
        for name in REQUESTS:
            patch.setattr(Bucket, name, failure.around(getattr(Bucket, name)))
        yield failure


def there(objects: Bucket, folder: Path) -> list[int]:
    """Return the rows published by a complete output in the store."""
    folder.mkdir()
    for name in (SUCCESS, OUTCOMES_FILE):
        if (found := objects.read(name)) is not None:
            (folder / name).write_bytes(found.content)
    return converted(folder)


@pytest.mark.in_turn
def test_killed_at_any_point_and_given_again(sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_rows, "PAGE_ROWS", 2)
    monkeypatch.setattr("eventlog.convert.place.SEAL_PIECES", 2)
    tmp_path.chmod(0o700)
    for number in range(1, 400, 3):
        metadata = sa.MetaData()
        metadata.reflect(sqlite)
        metadata.drop_all(sqlite)
        scene = Scene(sqlite, "one")
        scene.write(1, 6)
        objects = Bucket(MemoryStore(), "s3://bucket/p")
        conversion = order(scene, tmp_path / str(number), part_events=2)
        with publisher_stopped(scene), dying_asking(number) as death:
            ordered(StoredConversion(objects, conversion.destination, overwrite=False), conversion)
        scene.publish()  # a publisher comes first
        with publisher_stopped(scene):
            ordered(StoredConversion(objects, conversion.destination, overwrite=False), conversion)
        scene.write(7, 7)
        scene.publish()
        came = sorted(scene.receivers["one"].came + there(objects, tmp_path / f"{number}-there"))
        assert came == list(range(1, 8)), number
        assert (scene.waiting(), scene.left()) == ([], {}), number
        assert [name for name in objects.names() if name.startswith(("_", "."))] in ([SUCCESS], []), number
        if not death.is_dead:
            return
    raise AssertionError("it never came to an end")


def test_an_output_that_is_there_keeps_its_rows_although_an_error_came_then(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    scene = Scene(sqlite, "one")
    scene.write(1, 6)
    objects = Bucket(MemoryStore(), "s3://bucket/p")
    conversion = order(scene, tmp_path / "made")

    def away(_: StoredPlans) -> None:
        raise SinkError("The store is away.")

    with monkeypatch.context() as patch:
        patch.setattr(StoredPlans, "forget", away)
        with publisher_stopped(scene), pytest.raises(SinkError):
            ordered(StoredConversion(objects, conversion.destination, overwrite=False), conversion)
    scene.publish()
    assert scene.receivers["one"].came == []
    with publisher_stopped(scene):
        ordered(StoredConversion(objects, conversion.destination, overwrite=False), conversion)
    assert there(objects, tmp_path / "there") == list(range(1, 7))
    assert (scene.waiting(), scene.left()) == ([], {})


@pytest.mark.parametrize("publisher_first", [True, False])
def test_no_error_of_the_store_doubles_a_row(sqlite: Engine, tmp_path: Path, publisher_first: bool) -> None:
    """An output that was committed before the error appears with the next run, whoever comes."""
    tmp_path.chmod(0o700)
    for number in range(1, 200, 3):
        metadata = sa.MetaData()
        metadata.reflect(sqlite)
        metadata.drop_all(sqlite)
        scene = Scene(sqlite, "one")
        scene.write(1, 3)
        objects = Bucket(MemoryStore(), "s3://bucket/p")
        conversion = order(scene, tmp_path / str(number))
        place = StoredConversion(objects, conversion.destination, overwrite=False)
        with publisher_stopped(scene), failing(number) as failure:
            ordered(place, conversion)
        if publisher_first:
            scene.publish()
        with publisher_stopped(scene):
            ordered(place, conversion)
        scene.publish()
        came = sorted(scene.receivers["one"].came + there(objects, tmp_path / f"{number}-there"))
        assert came == [1, 2, 3], number
        assert (scene.waiting(), scene.left()) == ([], {}), number
        if failure.left > 0:
            return
    raise AssertionError("it never came to an end")


def test_an_output_whose_rows_were_given_back_meanwhile_never_appears(sqlite: Engine, tmp_path: Path) -> None:
    """Else a publisher would send them a second time."""
    tmp_path.chmod(0o700)
    scene = Scene(sqlite, "one")
    scene.write(1, 6)
    objects = Bucket(MemoryStore(), "s3://bucket/p")
    conversion = order(scene, tmp_path / "made")
    place = StoredConversion(objects, conversion.destination, overwrite=False)
    assert place.begin(conversion) is None
    with publisher_stopped(scene), marking(conversion, place) as marks:
        convert(conversion, jobs=1, marking=marks)
        name = name_conversion(place.name)
        assert outputs.forget(scene.log, name, ["one"], by="ann") == 6
        with pytest.raises(UsageError, match="The rows of this conversion were given back"):
            place.publish(marks)
    assert list(objects.names()) == []
    scene.publish()
    assert scene.receivers["one"].came == [1, 2, 3, 4, 5, 6]


def test_an_output_that_does_not_get_there_gives_its_rows_back(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    scene = Scene(sqlite, "one")
    scene.write(1, 6)
    conversion = order(scene, tmp_path / "made")
    place = StoredConversion(Bucket(MemoryStore(), "s3://bucket/p"), conversion.destination, overwrite=False)

    def away(*_: object) -> None:
        raise SinkError("The store is away.")

    monkeypatch.setattr(StoredPlans, "hide", away)
    with publisher_stopped(scene), pytest.raises(SinkError, match="The store is away"):
        ordered(place, conversion)
    scene.publish()
    assert scene.receivers["one"].came == [1, 2, 3, 4, 5, 6]
