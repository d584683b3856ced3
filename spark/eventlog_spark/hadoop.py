"""The file systems that Hadoop knows, as the driver asks them: what lies where, and output that is
complete or absent.

Spark writes each table into a folder of work inside the destination. When all is written, files are
renamed to the names of `eventlog convert`, and `_SUCCESS` comes last. Who finds none there finds
nothing complete, whatever was killed when. What a killed run has renamed goes when the next one
begins: the folder of work names the folders, until they are complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from eventlog.convert.commit import (
    MOVING,
    SUCCESS,
    UNMARKED,
    WORK,
    Summary,
    being_marked,
    folders_from,
    is_ours,
    is_reserved,
    success_of,
    summary_from,
)
from eventlog.convert.inputs import describe_damage
from eventlog.core.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_part = re.compile(r"part-(\d+)-").match
_special = re.compile(r"([\\{}\[\]*?])")


LOOK_THREADS: Final = 16
"""Threads that wait for file systems together."""


def as_named(address: str) -> str:
    """Escape an address, so Spark's readers take it as one name and no pattern."""
    return _special.sub(r"\\\1", address)


class Footer(Struct, frozen=True, kw_only=True):
    """What the end of a Parquet file says: its columns, also as a text with their types, and how
    many rows it has.
    """

    file: str
    names: tuple[str, ...]
    schema: str
    rows: int


def footers(spark: SparkSession, files: Sequence[str]) -> list[Footer]:
    """Read the footers of Parquet files; DataError names a file without one."""
    with ThreadPoolExecutor(LOOK_THREADS) as pool:
        return list(pool.map(partial(_footer, spark), files))


def _footer(spark: SparkSession, file: str) -> Footer:
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark._jvm  # noqa: SLF001  # the only way to the file systems of Hadoop
    jsc: Any = spark._jsc  # noqa: SLF001  # the same
    hadoop = jvm.org.apache.parquet.hadoop
    path = jvm.org.apache.hadoop.fs.Path(file)
    try:
        input_file = hadoop.util.HadoopInputFile.fromPath(path, jsc.hadoopConfiguration())
        reader = hadoop.ParquetFileReader.open(input_file)
    except Py4JJavaError as error:
        cause = str(error.java_exception.getMessage()).replace(file, "it")
        raise describe_damage(file, Exception(cause)) from error
    try:
        schema = reader.getFileMetaData().getSchema()
        names = tuple(str(field.getName()) for field in schema.getFields())
        # The first line is its name, which is its writer's.
        text = str(schema.toString()).partition("\n")[2]
        return Footer(file=file, names=names, schema=text, rows=int(reader.getRecordCount()))
    finally:
        reader.close()


class HadoopFolder:
    """A folder by its address, on whatever file system."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        self.address = address.rstrip("/")
        jvm: Any = spark._jvm  # noqa: SLF001  # the only way to the file systems of Hadoop
        self._path = jvm.org.apache.hadoop.fs.Path
        jsc: Any = spark._jsc  # noqa: SLF001  # the same
        self._system = self._path(address).getFileSystem(jsc.hadoopConfiguration())

    def files(self, pattern: str = "") -> dict[str, int]:
        """List the files in it, or matching a pattern, with sizes; leave hidden ones out."""
        # Java's null where nothing is there.
        statuses = self._system.globStatus(self._path(pattern or self.address)) or ()
        return dict(sorted(file for status in statuses for file in self._inside(status)))

    def names(self) -> set[str]:
        """List the names in it; none if it does not exist."""
        path = self._path(self.address)
        if not self._system.exists(path):
            return set()
        return {str(status.getPath().getName()) for status in self._system.listStatus(path)}

    def subfolder(self, name: str) -> str:
        """Return the address of a name in it."""
        return f"{self.address}/{name}"

    def remove(self, name: str) -> None:
        """Remove a file or a folder in it, with all that is in that."""
        self._system.delete(self._path(self.subfolder(name)), True)

    def copy_out(self, name: str, file: str) -> None:
        """Copy a file or a folder in it to this machine."""
        source, target = self._path(self.subfolder(name)), self._path(f"file:{file}")
        # The last word: else Hadoop leaves a file with a checksum beside each.
        self._system.copyToLocalFile(False, source, target, True)

    def begin(self, *, overwrite: bool) -> None:
        """Refuse a place with other than an unfinished run's remains, and remove these.

        With `overwrite` only an output with reserved rows is refused.
        """
        names = self.names()
        if {SUCCESS, UNMARKED} <= names and is_reserved(self.read(UNMARKED)):
            raise being_marked(self.address)
        unfinished = WORK in names and SUCCESS not in names
        if names and not unfinished and not overwrite:
            message = f"{self.address} is not empty."
            raise UsageError(message, hint="Choose another folder, or say --overwrite.")
        if unfinished:
            self._remove(names)
        self.remove(WORK)
        self._system.mkdirs(self._path(self.subfolder(WORK)))

    def commit(
        self,
        moves: list[tuple[str, str]],
        summary: Summary,
        order: str | None = None,
        identity: str = "",
    ) -> None:
        """Remove a former conversion, move files out of the work folder, and write `_SUCCESS` last.

        The order of a conversion of a log stays there until the log's rows are marked.
        """
        names = self.names()
        former = self._folders(names)
        strange = (names & set(summary.folders)) - former
        if strange:
            message = f"{self.subfolder(min(strange))} is there already"
            hint = "Move it away, or choose another place."
            raise UsageError(f"{message}, and is no output of a conversion.", hint=hint)
        folders = sorted(former.union(summary.folders))
        # Once `_SUCCESS` is gone nothing else says that these folders are ours.
        self.write(f"{WORK}/{MOVING}", msgspec.json.encode(folders))
        self._remove(names)
        for folder in {name.rpartition("/")[0] for _, name in moves} - {""}:
            self._system.mkdirs(self._path(self.subfolder(folder)))
        # On an object store a rename is a copy there, and each waits for its answer.
        with ThreadPoolExecutor(LOOK_THREADS) as pool:
            for _ in pool.map(lambda move: self._rename(*move), moves):
                pass
        # Written elsewhere and renamed, so that each is there as a whole or not at all.
        if order is not None:
            self._write_whole(UNMARKED, f"{order}\n".encode(), f"{WORK}/{UNMARKED}")
        self._write_whole(SUCCESS, success_of(summary, identity), f"{WORK}/{SUCCESS}")
        self.remove(WORK)

    def summary(self) -> Summary:
        """Read the summary of the complete conversion in it."""
        return summary_from(self.read(SUCCESS))

    def read(self, name: str) -> bytes:
        """Read a small file in it."""
        stream = self._system.open(self._path(self.subfolder(name)))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def blocks(self, name: str, size: int) -> Iterator[bytes]:
        """Read a file in it, so many bytes each time."""
        stream = self._system.open(self._path(self.subfolder(name)))
        try:
            while block := bytes(stream.readNBytes(size)):
                yield block
        finally:
            stream.close()

    def note(self, name: str, content: bytes) -> None:
        """Write a small file, whole or not at all."""
        self._write_whole(name, content, f"_{name}")

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, or overwrite it."""
        out = self._system.create(self._path(self.subfolder(name)))
        try:
            out.write(bytearray(content))
        finally:
            out.close()

    def parts(self, name: str) -> dict[int, str]:
        """List the files of Spark's tasks in a work folder, by the number of the task."""
        parts = {}
        for status in self._system.listStatus(self._path(self.subfolder(f"{WORK}/{name}"))):
            match = _part(str(status.getPath().getName()))
            # Spark's own `_SUCCESS` and checksums stand beside them.
            if match is not None:
                parts[int(match[1])] = str(status.getPath())
        return parts

    def files_by(self, column: str, address: str) -> Iterator[tuple[str, str]]:
        """List Spark's files by the values of a column: each one's address and value."""
        for folder in self._system.listStatus(self._path(address)):
            name, _, value = str(folder.getPath().getName()).partition("=")
            if name == column:
                [file] = list(self._system.listStatus(folder.getPath()))
                # Spark escapes what a file system may not have in a name.
                yield str(file.getPath()), unquote(value)

    def discard(self) -> None:
        """Remove the work folder, and the files moved by a failed commit."""
        names = self.names()
        if SUCCESS not in names and self._exists(f"{WORK}/{MOVING}"):
            self._remove(names)
        self.remove(WORK)

    def _remove(self, names: set[str]) -> None:
        """Remove a conversion's output, `_SUCCESS` first."""
        folders = self._folders(names)
        self.remove(SUCCESS)
        # What the folder of work says of these is needed until they are gone.
        for name in names - {WORK}:
            if name in folders or is_ours(name):
                self.remove(name)

    def _folders(self, names: set[str]) -> set[str]:
        """List the folders made here by a conversion, complete or interrupted."""
        folders = set[str]()
        if SUCCESS in names:
            folders.update(folders_from(self.read(SUCCESS)))
        if self._exists(f"{WORK}/{MOVING}"):
            moving = self.read(f"{WORK}/{MOVING}")
            # Who was killed while it was written left it empty, and had moved nothing.
            if moving:
                folders.update(msgspec.json.decode(moving, type=list[str]))
        return folders

    def _exists(self, name: str) -> bool:
        return bool(self._system.exists(self._path(self.subfolder(name))))

    def _write_whole(self, name: str, content: bytes, meanwhile: str) -> None:
        self.write(meanwhile, content)
        self._rename(self.subfolder(meanwhile), name)

    def _rename(self, source: str, name: str) -> None:
        # Hadoop answers false, and says nothing else, where something has the name already.
        if not self._system.rename(self._path(source), self._path(self.subfolder(name))):
            cause = f"somebody else may write to {self.address}"
            raise UsageError(f"{source} cannot be renamed to {name}; {cause}.")

    def _inside(self, status: Any) -> Iterator[tuple[str, int]]:
        if status.isFile():
            yield str(status.getPath()), int(status.getLen())
            return
        for inner in self._system.listStatus(status.getPath()):
            if not PurePosixPath(str(inner.getPath().getName())).name.startswith((".", "_")):
                yield from self._inside(inner)
