"""The output of a conversion in an object store of this process: there entirely or not at all, whoever is killed where."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from obstore.store import MemoryStore

from eventlog.convert import command
from eventlog.convert.commit import DAMAGED, SUCCESS, Summary
from eventlog.convert.orders import order_of
from eventlog.convert.run import run
from eventlog.convert.settings import Conversion, FilesInput
from eventlog.convert.stored import StoredConversion, claim, folder_for
from eventlog.core.errors import ConfigError, OccupiedError, SinkError, UsageError
from eventlog.core.rules import Options
from eventlog.sinks.store.objects import Bucket
from eventlog.sinks.store.plans import StoredPlans
from eventlog.xds.write import XdsFormat
from tests.support.sinks import KilledError, dying, tenure

TABLES = {"usr__ct/1.parquet": b"1", "usr__ct/_dfm/1.dfm": b"2", "outcomes.parquet": b"3"}
PARTS = {"part-00000.xml": b"4", "part-00001.xml": b"5", "outcomes.parquet": b"6"}


@pytest.fixture
def objects() -> Bucket:
    return Bucket(MemoryStore(), "s3://bucket/p")


@pytest.fixture(autouse=True)
def _private(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)


def order(folder: Path) -> Conversion:
    return Conversion(
        input=FilesInput(places=()), destination=folder, format=XdsFormat(batch_size=1), options=Options()
    )


def made(folder: Path, files: dict[str, bytes], ended: str = SUCCESS) -> dict[str, bytes]:
    """The output as an engine leaves it in a folder."""
    folders = tuple({name.split("/")[0] for name in files if "/" in name})
    told = {ended: msgspec.json.encode(Summary(rows=1, folders=folders))}
    for name, content in {**files, **told}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return {**files, **told}


def there(objects: Bucket) -> dict[str, bytes]:
    """All objects, hidden ones too."""
    found = {name: objects.read(name) for name in sorted(objects.names())}
    return {name: one.content for name, one in found.items() if one is not None}


def at(objects: Bucket, folder: Path, *, overwrite: bool = False) -> StoredConversion:
    return StoredConversion(objects, folder, overwrite=overwrite)


@pytest.mark.parametrize("files", [TABLES, PARTS], ids=["tables", "parts"])
@pytest.mark.parametrize("ended", [SUCCESS, DAMAGED])
def test_the_objects_are_those_of_the_folder(
    objects: Bucket, tmp_path: Path, files: dict[str, bytes], ended: str
) -> None:
    place = at(objects, tmp_path / "made")
    assert place.begin(order(place.folder)) is None
    wanted = made(place.folder, files, ended)
    (place.folder / "_temporary-eventlog").mkdir()
    (place.folder / "_temporary-eventlog" / "lock").touch()
    place.publish()
    assert there(objects) == wanted
    place.discard()
    assert not place.folder.exists()


def test_who_is_killed_while_it_replaces_an_output_leaves_the_former_or_none_or_the_new_one(tmp_path: Path) -> None:
    for before in count(1):
        objects = Bucket(MemoryStore(), "s3://bucket/p")
        former = made(tmp_path / f"{before}-former", TABLES)
        at(objects, tmp_path / f"{before}-former").publish()
        objects.put("theirs.txt", b"theirs")
        folder = tmp_path / str(before)
        wanted = made(folder, PARTS)
        with dying(before) as died, suppress(KilledError):
            at(objects, folder, overwrite=True).publish()
        found = there(objects)
        if SUCCESS in found:
            complete = former if found[SUCCESS] == former[SUCCESS] else wanted
            assert complete.items() <= found.items()
        again = at(objects, folder, overwrite=True)
        again.begin(order(folder))
        made(folder, PARTS)
        again.publish()
        assert there(objects) == {**wanted, "theirs.txt": b"theirs"}
        if not died.happened:
            return


@pytest.mark.parametrize("late", [SUCCESS, "part-00002.xml"])
def test_a_removal_that_comes_late_takes_nothing_of_an_output_that_is_complete(
    objects: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    """While one run removes the former output, another one finishes the new output in its place."""
    made(tmp_path / "former", {**PARTS, "part-00002.xml": b"7"})
    at(objects, tmp_path / "former").publish()
    wanted = made(tmp_path / "made", {name: content * 2 for name, content in PARTS.items()})
    usual = Bucket.remove

    def overtaken(bucket: Bucket, names: Sequence[str]) -> None:
        if late in names:
            monkeypatch.setattr(Bucket, "remove", usual)
            at(objects, tmp_path / "made", overwrite=True).finish_former()
            assert there(objects) == wanted
        usual(bucket, names)

    monkeypatch.setattr(Bucket, "remove", overtaken)
    with pytest.raises(OccupiedError):
        at(objects, tmp_path / "made", overwrite=True).publish()
    assert there(objects) == {name: content for name, content in wanted.items() if name != late}


def test_a_place_that_holds_something_is_refused(objects: Bucket, tmp_path: Path) -> None:
    objects.put("theirs.txt", b"")
    place = at(objects, tmp_path / "made")
    with pytest.raises(UsageError, match=r"s3://bucket/p is not empty.* --overwrite"):
        place.begin(order(place.folder))
    made(place.folder, PARTS)
    with pytest.raises(UsageError, match="is not empty"):
        place.publish()
    at(objects, place.folder, overwrite=True).publish()
    assert {"theirs.txt", "part-00000.xml"} <= there(objects).keys()


def test_the_place_of_a_publisher_is_left_alone(objects: Bucket, tmp_path: Path) -> None:
    StoredPlans(objects).take_over(tenure())
    place = at(objects, tmp_path / "made", overwrite=True)
    with pytest.raises(UsageError, match="is where a publisher writes"):
        place.begin(order(place.folder))


def test_of_two_at_once_the_later_one_stays(objects: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "first", PARTS)
    wanted = made(tmp_path / "second", TABLES)
    usual = StoredPlans.hide

    def overtaken(plans: StoredPlans, *hidden: Any) -> Any:
        monkeypatch.setattr(StoredPlans, "hide", usual)
        at(objects, tmp_path / "second").publish()
        return usual(plans, *hidden)

    monkeypatch.setattr(StoredPlans, "hide", overtaken)
    with pytest.raises(OccupiedError):
        at(objects, tmp_path / "first").publish()
    assert there(objects) == wanted


def test_the_folder_is_for_us_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = folder_for("s3://bucket/p")
    assert folder == folder_for("s3://bucket/p") != folder_for("s3://bucket/q")
    assert not folder.parent.exists()
    with claim(folder, "writes"):
        assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert not folder.parent.exists()
    folder.parent.mkdir(0o755)
    with pytest.raises(ConfigError, match="may be read or written by others"), claim(folder, ""):
        pass
    folder.parent.rmdir()
    folder.parent.symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="set TMPDIR"), claim(folder, ""):
        pass


@pytest.mark.parametrize("kept", ["s3://bucket/in", "s3://bucket/out"])
def test_a_second_command_leaves_the_folders_of_the_first_one_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    """Also where it only reads the same address: they would share the copies."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    words = ["s3://bucket/in", "--out", "s3://bucket/out", "--engine", "local"]
    given = order_of("files", command.files.make_context("convert", words).params)
    folders = {address: Path(folder) for folder, address in given.places.fetched.items()}
    folder = {**folders, "s3://bucket/out": given.places.out}[kept]
    with claim(folder, "is at work"):
        made(folder, PARTS)
        with pytest.raises(SinkError, match=rf"Another conversion .* {kept}\.") as refused:
            run(given)
        assert refused.value.may_pass
        assert (folder / SUCCESS).exists()


def test_an_output_that_somebody_removed_is_not_put_there(objects: Bucket, tmp_path: Path) -> None:
    place = at(objects, tmp_path / "made")
    made(place.folder, PARTS)
    (place.folder / SUCCESS).unlink()
    with pytest.raises(SinkError, match="is gone"):
        place.publish()
    assert list(place.folder.iterdir())
    assert not [name for name in there(objects) if "position" not in name]


def test_an_object_that_goes_before_it_is_fetched_is_named(objects: Bucket, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=r"s3://bucket/p/a\.jsonl is gone"):
        objects.fetch("a.jsonl", tmp_path / "a.jsonl")


def test_folders_of_others_stand_in_the_way(objects: Bucket, tmp_path: Path) -> None:
    objects.put("usr__ct/theirs.parquet", b"")
    made(tmp_path / "made", TABLES)
    with pytest.raises(UsageError, match="s3://bucket/p/usr__ct is there already"):
        at(objects, tmp_path / "made", overwrite=True).publish()
