"""The file systems that Hadoop knows, as the driver asks them: what lies where, and output that is complete or absent.

Spark writes each table into a folder of work inside the destination. When all is written, files are renamed to the names
of `eventlog convert`, and `_SUCCESS` comes last. Who finds none there finds nothing complete, whatever was killed when.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from eventlog.convert.commit import OUTCOMES_FILE, SUCCESS, WORK, Summary
from eventlog.core.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_part = re.compile(r"part-(\d+)-").match
_document = re.compile(r"part-\d{5,}\.xml").fullmatch


class HadoopFolder:
    """A folder by its address, on whatever file system."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        self.address = address.rstrip("/")
        jvm: Any = spark._jvm  # noqa: SLF001  # the only way to the file systems of Hadoop
        self._files = jvm.org.apache.hadoop.fs
        self._local = jvm.java.io.File
        self._path = self._files.Path
        jsc: Any = spark._jsc  # noqa: SLF001  # the same
        self._system = self._path(address).getFileSystem(jsc.hadoopConfiguration())

    def files(self, pattern: str = "") -> list[str]:
        """The addresses of all files in it, or of those that a pattern means; hidden ones are left out."""
        found = self._system.globStatus(self._path(pattern or self.address))
        return sorted({file for one in found or () for file in self._inside(one)})

    def names(self) -> set[str]:
        """What lies in it; nothing where it is not there."""
        place = self._path(self.address)
        return (
            {str(one.getPath().getName()) for one in self._system.listStatus(place)}
            if self._system.exists(place)
            else set()
        )

    def subfolder(self, name: str) -> str:
        """The address of something in it."""
        return f"{self.address}/{name}"

    def remove(self, name: str) -> None:
        """Removes a file or a folder in it."""
        self._delete(name)

    def copy_in(self, file: str, name: str) -> None:
        """Brings a file or a folder of this machine into it."""
        conf, place = self._system.getConf(), self._path(self.subfolder(name))
        self._files.FileUtil.copy(self._local(file), self._system, place, False, conf)

    def copy_out(self, name: str, file: str) -> None:
        """Brings a file or a folder in it to this machine."""
        self._system.copyToLocalFile(False, self._path(self.subfolder(name)), self._path(f"file:{file}"), True)

    def begin(self, *, overwrite: bool) -> None:
        """Refuses a place that holds anything but what an unfinished run left, unless told to overwrite; removes that."""
        names = self.names()
        unfinished = WORK in names and SUCCESS not in names
        if names and not unfinished and not overwrite:
            raise UsageError(f"{self.address} is not empty.", hint="Choose another folder, or say --overwrite.")
        if unfinished:
            self._remove(names)
        self._delete(WORK)
        self._system.mkdirs(self._path(self.subfolder(WORK)))

    def commit(self, moves: list[tuple[str, str]], summary: Summary) -> None:
        """Takes a former conversion away, renames files of the work folder, and says that all is there."""
        self._remove(self.names() - {WORK})
        made: set[str] = set()
        for source, name in moves:
            parent = self._path(self.subfolder(name)).getParent()
            if str(parent) not in made:
                self._system.mkdirs(parent)
                made.add(str(parent))
            if not self._system.rename(self._path(source), self._path(self.subfolder(name))):
                raise UsageError(f"{source} cannot be renamed to {name}; somebody else may write to {self.address}.")
        self._write(SUCCESS, msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
        self._delete(WORK)

    def summary(self) -> Summary:
        """What the complete conversion in it did."""
        return msgspec.json.decode(self.read(SUCCESS), type=Summary)

    def read(self, name: str) -> bytes:
        """What a small file in it holds."""
        stream = self._system.open(self._path(self.subfolder(name)))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def note(self, name: str, content: bytes) -> None:
        """Writes a small file, which is there as a whole or not at all."""
        self._write(f"_{name}", content)
        if not self._system.rename(self._path(self.subfolder(f"_{name}")), self._path(self.subfolder(name))):
            raise UsageError(f"{self.subfolder(name)} is there already; somebody else may write to {self.address}.")

    def parts(self, name: str) -> dict[int, str]:
        """What Spark wrote into a folder of work: the address of each task's file."""
        listed = self._system.listStatus(self._path(self.subfolder(f"{WORK}/{name}")))
        found = {str(one.getPath().getName()): str(one.getPath()) for one in listed}
        return {int(match[1]): path for file, path in found.items() if (match := _part(file))}

    def files_by(self, column: str, place: str) -> Iterator[tuple[str, str]]:
        """What Spark wrote by the values of a column, a file for each: its address, and the value."""
        for folder in self._system.listStatus(self._path(place)):
            name, _, value = str(folder.getPath().getName()).partition("=")
            if name == column:
                [file] = list(self._system.listStatus(folder.getPath()))
                yield str(file.getPath()), unquote(value)

    def discard(self) -> None:
        """Removes what is only needed meanwhile."""
        self._delete(WORK)

    def _remove(self, names: set[str]) -> None:
        """Removes a conversion's output, `_SUCCESS` first."""
        folders = self._folders() if SUCCESS in names else set[str]()
        for name in sorted(names & {SUCCESS, OUTCOMES_FILE, *folders} | set(filter(_document, names))):
            self._delete(name)

    def _folders(self) -> set[str]:
        told = self.read(SUCCESS)
        return set(msgspec.json.decode(told, type=Summary).folders) if told else set()

    def _write(self, name: str, content: bytes) -> None:
        out = self._system.create(self._path(self.subfolder(name)))
        try:
            out.write(bytearray(content))
        finally:
            out.close()

    def _delete(self, name: str) -> None:
        self._system.delete(self._path(self.subfolder(name)), True)

    def _inside(self, status: Any) -> Iterator[str]:
        if status.isFile():
            yield str(status.getPath())
            return
        for one in self._system.listStatus(status.getPath()):
            if not PurePosixPath(str(one.getPath().getName())).name.startswith((".", "_")):
                yield from self._inside(one)
