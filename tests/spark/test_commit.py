"""Output at an address is complete or absent: its driver ends at each change of the file system, or a change fails there."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eventlog.convert.commit import SUCCESS, UNMARKED, WORK, Summary
from eventlog.core.errors import UsageError
from eventlog_spark.hadoop import HadoopFolder
from tests.spark.test_addresses import files, hdfs, s3a

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMER = {"part-00000.xml": b"former", "USR__ct/part-00000.parquet": b"a", "USR__ct/part-00001.parquet": b"b"}
WANTED = {"part-00000.xml": b"new", "outcomes.parquet": b"o", "USR__ct/part-00000.parquet": b"c"} | {
    "usr/part-00000.jsonl": b"d",
    UNMARKED: b"order\n",
}


class EndedError(Exception):
    """The process ended, or its file system."""


class EndingFiles:
    """A file system that ends before a change of this number, and renames onto nothing that is there, as HDFS does."""

    def __init__(self, files: Any, last: int) -> None:
        self._files = files
        self.left = last

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def rename(self, source: Any, target: Any) -> bool:
        self._count()
        return not self._files.exists(target) and bool(self._files.rename(source, target))

    def delete(self, *told: Any) -> Any:
        self._count()
        return self._files.delete(*told)

    def create(self, *told: Any) -> Any:
        self._count()
        return self._files.create(*told)

    def mkdirs(self, *told: Any) -> Any:
        self._count()
        return self._files.mkdirs(*told)

    def _count(self) -> None:
        if self.left == 0:
            raise EndedError
        self.left -= 1


def ending(spark: SparkSession, place: Path | str, last: int = -1) -> HadoopFolder:
    folder = HadoopFolder(spark, f"file:{place}" if isinstance(place, Path) else place)
    folder._system = EndingFiles(folder._system, last)
    return folder


def write(folder: HadoopFolder, files: dict[str, bytes], *, overwrite: bool = False) -> None:
    """A conversion whose files Spark has written."""
    folder.begin(overwrite=overwrite)
    moves = []
    for number, (name, content) in enumerate((name, files[name]) for name in files if name != UNMARKED):
        folder.write(f"{WORK}/text/{number}", content)
        moves.append((folder.subfolder(f"{WORK}/text/{number}"), name))
    made = {name.split("/")[0] for name in files if "/" in name}
    folder.commit(moves, Summary(rows=1, folders=tuple(sorted(made))), "order" if UNMARKED in files else None)


def there(place: Path) -> dict[str, bytes]:
    """The output; nothing where it is not complete."""
    files = {
        str(path.relative_to(place)): path for path in place.rglob("*") if path.is_file() and path.suffix != ".crc"
    }
    return {
        name: path.read_bytes()
        for name, path in files.items()
        if SUCCESS in files and name != SUCCESS and not name.startswith(WORK)
    }


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "system, former",
    [(files, {}), (files, FORMER), (hdfs, FORMER), pytest.param(s3a, FORMER, marks=pytest.mark.long)],
    ids=["empty", "overwritten", "on an HDFS", "on S3A"],
)
def test_who_ends_at_any_change_leaves_what_the_next_one_completes(
    spark: SparkSession, tmp_path: Path, system: Any, former: dict[str, bytes]
) -> None:
    copies, seen = count(), set()

    def found(base: str, name: str) -> dict[str, bytes]:
        """What stands there, as a copy of it on this machine shows."""
        copy = tmp_path / f"copy-{next(copies)}"
        if HadoopFolder(spark, f"{base}/{name}").names():
            HadoopFolder(spark, base).copy_out(name, str(copy))
        return there(copy)

    with system(spark, tmp_path) as base:
        for last in range(100):
            place = f"{base}/to-{last}"
            if former:
                write(ending(spark, place), former)
            try:
                write(ending(spark, place, last), WANTED, overwrite=bool(former))
            except EndedError:
                left = found(base, f"to-{last}")
                seen.add(len(left))
                assert left in ({}, former, WANTED)
            else:
                assert WORK not in HadoopFolder(spark, place).names()
                break
            if left != WANTED:
                write(ending(spark, place), WANTED, overwrite=left == former != {})
            assert found(base, f"to-{last}") == WANTED
        else:
            pytest.fail("it never came to its end")
    assert seen == {0, len(former), len(WANTED)}


def test_a_change_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    for last in range(100):
        place = tmp_path / str(last)
        folder = ending(spark, place, last)
        try:
            write(folder, WANTED)
        except EndedError:
            folder._system.left = -1  # it was one change that failed
            folder.discard()
            assert there(place) in ({}, WANTED)
        else:
            break
        if not there(place):
            write(ending(spark, place), WANTED)
        assert there(place) == WANTED


@pytest.mark.parametrize("content", ["", '{"name": "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"}'])
def test_what_another_program_calls_success_is_not_ours(spark: SparkSession, tmp_path: Path, content: str) -> None:
    (tmp_path / SUCCESS).write_text(content)
    with pytest.raises(UsageError, match="is not empty"):
        write(ending(spark, tmp_path), WANTED)
    write(ending(spark, tmp_path), WANTED, overwrite=True)
    assert there(tmp_path) == WANTED
