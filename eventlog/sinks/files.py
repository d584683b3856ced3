"""The files sink: one file per document in a folder, there entirely or not at all, under a name
made from its id.

How the files of a plan come there all together, whoever is stopped where, stands in `plan_folder`,
and for an object store in `store.plans`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path, PurePath
from threading import Lock
from typing import Any, Final

from msgspec import Struct

from eventlog.core.model import Document, Outcome
from eventlog.core.seams import Resolved, SinkCapabilities, Tenure
from eventlog.sinks.plan_folder import PlanFolder, folders_from, not_written
from eventlog.sinks.plans import HiddenFiles, Plans, resolve

NAME_BYTES: Final = 180
"""Bytes of a name before its suffix.

File systems take 255, and hidden files have names around it.
"""

SHORTENED: Final = "~"
"""Stands in a name that was too long; elsewhere it is escaped, as every character that is not safe."""

ROUTED: Final = ".eventlog-routed"
"""An empty folder beside the documents, once some went to folders of their own.

From then on the folders below are searched, for a route may be taken away while documents of it are
hidden; before that they are not, for they may be anybody's, and large.
"""

# Capitals as well, for some file systems know no case.
_unsafe = re.compile(rb"[^0-9a-z._-]|^\.")
_escaped = re.compile(rb"%([0-9a-f]{2})")


class PreparedDocuments(Struct, frozen=True):
    """Documents of a plan, on the disk under names that nobody looks at."""

    documents: Sequence[Document]
    hidden: HiddenFiles


class FileSink:
    """Writes each document to `place`, or where its route leads in it, as its id and `suffix`.

    A repeat replaces itself.
    """

    capabilities = SinkCapabilities(resolves=True, prepares=True)

    def __init__(self, target: Path | Plans, suffix: str) -> None:
        self._plans: Plans = PlanFolder(target, self._folders) if isinstance(target, Path) else target
        self.folder = self._plans.folder
        self.suffix = suffix
        self._last = ""
        self._prepared: dict[str, PreparedDocuments | None] = {}
        """By their plans, in the order in which they were begun.

        None while they are on their way.
        """
        self._turn = Lock()  # one thread prepares documents while another commits those before them

    def open(self, tenure: Tenure | None) -> None:
        """Takes the folder over, and looks which document is the last."""
        # Nothing that was prepared under a former lock may be shown under this one.
        self._take("", ())
        try:
            self._plans.take_over(tenure)
            self._last = self._plans.last(self._ids)
        except OSError as error:
            raise not_written("Documents", self.folder, error) from error

    def last(self) -> str:
        """Return the greatest id in the folder, or the empty string.

        Ids sort like the positions they are made from.
        """
        return self._last

    def resolve(self, plan: str) -> Resolved:
        """Shows the rest of a plan that was begun.

        Of one that was not nothing is there, nor hidden any more.
        """
        self._take("", ())
        try:
            self._plans.finish_former()
            # A file may have got its name although that was reported as an error.
            self._last = self._plans.last(self._ids)
        except OSError as error:
            raise not_written("Documents", self.folder, error) from error
        return resolve(self._plans.plan, plan)

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        """Writes them under names that nobody looks at."""
        with self._turn:
            if plan == self._plans.plan or plan in self._prepared:
                return
            self._prepared[plan] = None
        # Without the lock, for the disk takes its time; meanwhile a commit may have thrown the plan
        # away.
        hidden = self._hide(plan, documents)
        # Read once more under the lock: `wanted` decides who discards the files.
        with self._turn:
            wanted = plan in self._prepared
            if wanted:
                self._prepared[plan] = PreparedDocuments(documents, hidden)
        if not wanted:
            hidden.discard()

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        """Shows them, durable when it returns.

        One that comes again under another plan takes its own place.
        """
        prepared = None
        if plan:
            prepared = self._take(plan, documents)
        if not documents or (plan and plan == self._plans.plan):
            return ()
        hidden = prepared or self._hide(plan, documents)
        last = max(map(attrgetter("id"), documents))
        try:
            self._plans.show(hidden, last=last)
        except OSError as error:
            raise not_written("Documents", self.folder, error) from error
        self._last = max(self._last, last)
        return ()

    def close(self) -> None:
        self._take("", ())

    def _hide(self, plan: str, documents: Sequence[Document]) -> HiddenFiles:
        try:
            files: list[tuple[PurePath, bytes]] = []
            for document in documents:
                files += self._files(document)
            hidden: HiddenFiles = self._plans.hide(plan, files)
        except OSError as error:
            self._take("", ())
            raise not_written("Documents", self.folder, error) from error
        return hidden

    def _take(self, plan: str, documents: Sequence[Document]) -> HiddenFiles | None:
        """Take the files prepared for exactly these documents; discard those of earlier plans.

        None if the plan has none; then all prepared files are discarded.
        """
        with self._turn:
            former = []
            for begun in list(self._prepared):
                if begun == plan:
                    break
                former.append(self._prepared.pop(begun))
            prepared = self._prepared.pop(plan, None)
        if prepared is not None and prepared.documents != documents:
            former.append(prepared)
            prepared = None
        for unwanted in former:
            # Else whoever prepares it finds that it is not wanted any more.
            if unwanted is not None:
                unwanted.hidden.discard()
        return None if prepared is None else prepared.hidden

    def path(self, identity: str) -> Any:
        """Return the path of the document with this id."""
        return self.folder / f"{file_name(identity)}{self.suffix}"

    def _files(self, document: Document) -> list[tuple[PurePath, bytes]]:
        name = file_name(document.id)
        path = self.folder / f"{name}{self.suffix}"
        if document.route:
            path = self.folder / document.route / path.name
            self._plans.make(self.folder / ROUTED)
            self._plans.make(path.parent)
        if SHORTENED not in name:
            return [(path, document.body)]
        # Such a name does not tell its id, so a hidden file beside it does.
        identity = document.id.encode("utf-8", "surrogatepass")
        return [(self._label(path), identity), (path, document.body)]

    def _label(self, path: PurePath) -> PurePath:
        """Return the hidden file with the whole id of a shortened name; written before the
        document.
        """
        return path.with_name(f".{path.name}.id")

    def _folders(self) -> Iterator[Path]:
        """Yield the folder and those of routes, former ones included."""
        if not (self.folder / ROUTED).exists():
            return iter([self.folder])
        return folders_from(self.folder, dotted=False)

    def _ids(self, paths: Iterable[PurePath]) -> Iterator[str]:
        """Yield the ids of the documents among these files."""
        for path in paths:
            if path.name.endswith(self.suffix) and not path.name.startswith("."):
                identity = document_id(path.name.removesuffix(self.suffix))
                if identity is None:  # its name was shortened
                    label = self._plans.read(self._label(path))
                    identity = "" if label is None else _text(label)
                yield identity


def file_name(identity: str) -> str:
    """Make a file name valid on every file system, unique even where case is ignored."""
    plain = identity.encode("utf-8", "surrogatepass")
    escaped = _unsafe.sub(lambda match: b"%%%02x" % match[0][0], plain)
    name = escaped.decode("ascii") or "%"  # the empty id too has a name
    if len(name) > NAME_BYTES:
        name = f"{name[: NAME_BYTES - 65]}{SHORTENED}{hashlib.sha256(plain).hexdigest()}"
    return name


def document_id(name: str) -> str | None:
    """Return the id behind a file name; None if it was shortened or is not ours."""
    # A file of somebody else may have a name that is no UTF-8: so Python gives its bytes.
    encoded = name.encode("utf-8", "surrogateescape")
    plain = _escaped.sub(lambda match: bytes([int(match[1], 16)]), encoded)
    if name == "%":
        plain = b""
    try:
        identity = _text(plain)
    except UnicodeDecodeError:
        return None
    # Written again it must be the same name: somebody else's file may be called alike.
    if file_name(identity) != name:
        return None
    return identity


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")
