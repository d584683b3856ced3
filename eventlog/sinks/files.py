"""The files sink: one file per document in a folder, there entirely or not at all, under a name made from its id.

Law: files are made hidden, then it is made sure that the folder is still ours, then they get their names. Whoever takes
the folder over says so first, and then removes what others have hidden there. So nothing of a former publisher appears
after the first document of the new one, wherever it was stopped, and no lock has to be waited for.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Final

from msgspec import Struct

from eventlog.core.durable_files import (
    PartialFile,
    discard_files,
    flush,
    make_folder,
)
from eventlog.core.errors import SinkError
from eventlog.core.model import Document, Outcome
from eventlog.core.seams import SinkCapabilities, Tenure
from eventlog.sinks.ownership import OWNERS, OwnedFolder

NAME_BYTES: Final = 180
"""Bytes of a name before its suffix; file systems take 255, and tools add to names."""

GROUP_DOCUMENTS: Final = 512
"""Documents that are flushed together; more would not be faster and would need their space twice for longer."""

_unsafe = re.compile(rb"[^0-9a-z._-]|^\.")
_escaped = re.compile(rb"%([0-9a-f]{2})")


class Staged(Struct, frozen=True):
    """Documents on their way to the disk, under names that nobody looks at."""

    documents: Sequence[Document]
    parts: Future[list[PartialFile]]

    def are(self, documents: Sequence[Document]) -> bool:
        mine = self.documents
        return len(mine) == len(documents) and all(map(Document.__eq__, mine, documents))


class FileSink:
    """Writes each document to `folder`, or where its route leads in it, as its id and `suffix`; a repeat replaces itself."""

    def __init__(self, folder: Path, suffix: str, *, routed: bool = False) -> None:
        self._routed = routed
        self.folder = folder
        self.suffix = suffix
        self._owned = OwnedFolder(folder)
        self._last = ""
        self._staged: deque[Staged] = deque()
        self._staging = Lock()  # one thread makes documents ready while another writes those before them
        self._beside: ThreadPoolExecutor | None = None

    @property
    def capabilities(self) -> SinkCapabilities:
        return SinkCapabilities(stage=self.stage)

    def open(self, tenure: Tenure | None) -> None:
        """Takes the folder over, and looks which document is the last."""
        self._take(())
        try:
            make_folder(self.folder)
            self._owned.take_over(tenure)
            self._owned.remove_hidden(self._folders())
            self._last = self._newest()
        except OSError as error:
            raise self._refused(error) from error

    def last(self) -> str:
        """The greatest id in the folder, for ids sort like the positions that they come from; else the empty string."""
        return self._last

    def stage(self, documents: Sequence[Document]) -> None:
        """Begins to write them under names that nobody looks at; what goes wrong is said by `write`."""
        if not 0 < len(documents) <= GROUP_DOCUMENTS:
            return
        with self._staging:
            if any(staged.are(documents) for staged in self._staged):
                return
            if self._beside is None:
                self._beside = ThreadPoolExecutor(1, thread_name_prefix="eventlog-files")
            hidden = self._beside.submit(self._owned.hide, self._files_of(documents))
            self._staged.append(Staged(documents, hidden))

    def write(self, documents: Sequence[Document], plan: str = "") -> Sequence[Outcome]:
        """Writes them in order, durable when it returns; one that comes again takes its own place."""
        for start in range(0, len(documents), GROUP_DOCUMENTS):
            group = documents[start : start + GROUP_DOCUMENTS]
            try:
                self._owned.remove_left(self._folders())
                self._owned.show(self._hidden(group))
            except OSError as error:
                self._take(())
                raise self._refused(error) from error
            self._last = max([self._last, *(document.id for document in group)])
        return ()

    def close(self) -> None:
        self._take(())
        beside, self._beside = self._beside, None
        if beside is not None:
            beside.shutdown()

    def _hidden(self, documents: Sequence[Document]) -> list[PartialFile]:
        """The documents on the disk, where nobody sees them yet."""
        staged = self._take(documents)
        if staged is None:
            return self._owned.hide(self._files_of(documents))
        return staged.parts.result()

    def _take(self, documents: Sequence[Document]) -> Staged | None:
        """These documents as they were staged; what was staged before them is wanted no more, and removed."""
        with self._staging:
            place = next((place for place, staged in enumerate(self._staged) if staged.are(documents)), None)
            former = [self._staged.popleft() for _ in range(len(self._staged) if place is None else place)]
            staged = None if place is None else self._staged.popleft()
        for parts in (one.parts for one in former):
            if parts.exception() is None:
                discard_files(parts.result())
        return staged

    def _files_of(self, documents: Sequence[Document]) -> list[tuple[Path, bytes]]:
        return [file for document in documents for file in self._files(document)]

    def path(self, identity: str) -> Path:
        """Where the document with this id stands."""
        return self.folder / f"{file_name(identity)}{self.suffix}"

    def _files(self, document: Document) -> list[tuple[Path, bytes]]:
        path = self.path(document.id)
        if document.route:
            path = self.folder / document.route / path.name
            if not path.parent.is_dir():
                self._make(path.parent)
        if document_id(file_name(document.id)) is not None:
            return [(path, document.body)]
        return [(self._label(path), _bytes(document.id)), (path, document.body)]

    def _make(self, folder: Path) -> None:
        """Makes a folder that a route leads to; its name is durable before a document is in it."""
        make_folder(folder)
        while folder != self.folder:
            folder = folder.parent
            flush(folder)

    def _label(self, path: Path) -> Path:
        """The hidden file that keeps an id which is too long for a name; it comes before the document."""
        return path.with_name(f".{path.name}.id")

    def _folders(self) -> Iterator[Path]:
        """The folder, and those that routes lead to; one that has an owner of its own is another output's."""
        if not self._routed:
            yield self.folder
            return
        for place, below, _ in os.walk(self.folder):
            below[:] = [name for name in below if name[0] != "." and not Path(place, name, OWNERS).exists()]
            yield Path(place)

    def _newest(self) -> str:
        paths = (Path(entry) for place in self._folders() for entry in os.scandir(place))
        own = (path for path in paths if path.name.endswith(self.suffix) and not path.name.startswith("."))
        return max((self._id_of(path) or "" for path in own), default="")

    def _id_of(self, path: Path) -> str | None:
        found = document_id(path.name.removesuffix(self.suffix))
        label = self._label(path)
        if found is None and label.exists():
            return _text(label.read_bytes())
        return found

    def _refused(self, error: OSError) -> SinkError:
        return self._owned.not_written("Documents", error)


def file_name(identity: str) -> str:
    """A name that every file system can carry, different for different ids even where case does not count."""
    written = _unsafe.sub(lambda match: b"%%%02x" % match[0][0], _bytes(identity)) or b"%"
    if len(written) > NAME_BYTES:
        written = written[: NAME_BYTES - 65] + b"~" + hashlib.sha256(_bytes(identity)).hexdigest().encode()
    return written.decode("ascii")


def document_id(name: str) -> str | None:
    """The id behind a name; None when the name was shortened, or when it is not one of ours."""
    plain = _escaped.sub(lambda match: bytes([int(match[1], 16)]), name.encode("utf-8", "surrogateescape"))
    try:
        found = _text(b"" if name == "%" else plain)
    except UnicodeDecodeError:
        return None
    return found if file_name(found) == name else None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")
