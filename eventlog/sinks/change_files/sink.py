"""Change tables as folders of files: each document's rows in files of their own, a description beside each.

    <path>/<schema>.<table>__ct/[<partition>/]20240506-07080912-0000000000000004711.parquet  and  _dfm/….dfm

Law: a file's name comes from its document and from what is durably there, so a repeat writes the same files again;
`_position.json` comes last and says what that is, and under which plan. Files are made hidden, then it is made sure that the folder is still
ours, then they get their names; whoever takes the folder over says so first, and then removes what others have hidden.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.durable_files import flush, make_folder
from eventlog.core.errors import DataError, SinkError
from eventlog.core.model import Document, Outcome, Position
from eventlog.core.rules.meaning import refusals
from eventlog.core.seams import SinkCapabilities, Tenure
from eventlog.qlik.change_seq import TIME_DIGITS
from eventlog.qlik.change_tables.partitions import read_partition
from eventlog.qlik.change_tables.rows import RowBlock, RowsDocument
from eventlog.sinks.change_files.dfm import description, description_name
from eventlog.sinks.change_files.row_files import file_bytes
from eventlog.sinks.change_files.settings import PARQUET, SET_ASIDE, RowFiles
from eventlog.sinks.ownership import OwnedFolder

POSITION: Final = "_position.json"
PARTITIONS: Final = "attrep_cdc_partitions.jsonl"
File = tuple[Path, bytes]
Notes = list[tuple[Position, str]]


class Open(Struct, frozen=True, kw_only=True):
    """A partition that rows may still come into, and whose it is."""

    owner: str
    table: str
    partition: str


class FolderState(Struct, frozen=True, kw_only=True):
    """How far the folder is. `versions` counts how often a table's columns changed; `refusals` are of the last plan.

    `named` is the time that the last file is called by, where files are called by times; `loads` counts the files of
    full loads in each folder.
    """

    change_seq: str = ""
    plan: str = ""
    open: dict[str, Open] = {}
    versions: dict[str, tuple[int, list[tuple[str, str]]]] = {}
    refusals: Notes = []
    named: str = ""
    loads: dict[str, int] = {}


class Names:
    """The names of a plan's files, which go on from those that are there."""

    def __init__(self, form: RowFiles, state: FolderState) -> None:
        self._by_time = form.names == "time"
        self.named = state.named
        self.loads = dict(state.loads)

    def of(self, block: RowBlock, identity: str, number: int) -> str:
        """What the file of a block is called, without its ending."""
        if block.load:
            self.loads[block.folder] = self.loads.get(block.folder, 0) + 1
            return f"LOAD{self.loads[block.folder]:08d}"
        if self._by_time:
            self.named = max(f"{identity[:TIME_DIGITS]}0", _after(self.named))
            return f"{self.named[:8]}-{self.named[8:]}"
        return f"{identity[:8]}-{identity[8:TIME_DIGITS]}-{identity[TIME_DIGITS:]}" + (f"-{number}" if number else "")


def _after(named: str) -> str:
    """The next millisecond; no name is given twice."""
    if not named:
        return ""
    if named.startswith("0000"):  # of changes whose time nobody knows
        return f"{int(named) + 1:017d}"
    at = dt.datetime.strptime(f"{named}000", "%Y%m%d%H%M%S%f") + dt.timedelta(milliseconds=1)
    return f"{at.year:04d}{at:%m%d%H%M%S}{at.microsecond // 1000:03d}"


class ChangeTableFiles:
    """Writes the rows of documents into folders of change tables."""

    def __init__(
        self,
        folder: Path,
        form: RowFiles = PARQUET,
        task: str = "eventlog",
        *,
        stop: bool = False,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        self.folder = folder
        self._now = now
        self.form = form
        self.task = task
        self._stop = stop
        self._owned = OwnedFolder(folder)
        self._state = FolderState()

    @property
    def capabilities(self) -> SinkCapabilities:
        return SinkCapabilities(has=self.has)

    def open(self, tenure: Tenure | None) -> None:
        """Takes the folder over, and reads how far it is."""
        try:
            make_folder(self.folder)
            self._owned.take_over(tenure)
            self._owned.remove_hidden(self._folders())
            self._state = self._read()
        except OSError as error:
            raise self._failed(error) from error

    def last(self) -> str:
        """The change_seq of the last document that is durably there."""
        return self._state.change_seq

    def write(self, documents: Sequence[Document], plan: str = "") -> Sequence[Outcome]:
        """Writes files of each document, durable when it returns; answers which events have no row there."""
        rows = [one for one in documents if isinstance(one, RowsDocument)]
        if plan and plan == self._state.plan:
            said = self._state.refusals
        else:
            said = self._written(rows, plan) if rows else []
        return refusals(said)

    def has(self, plan: str) -> bool:
        """Whether the plan was the last that got its names."""
        return bool(plan) and plan == self._state.plan

    def close(self) -> None:
        """Holds nothing open."""

    def _written(self, documents: Sequence[RowsDocument], plan: str) -> Notes:
        state = self._state
        versions, opened, lines = dict(state.versions), dict(state.open), []
        refused: Notes = []
        files: list[File] = []
        names = Names(self.form, state)
        for document in documents:
            for number, block in enumerate(document.blocks):
                versions[block.folder] = _version(versions.get(block.folder), block)
                more, why = self._files(names, (document.id, number), block, versions[block.folder][0])
                files += more
                refused += why
                lines += _closed(opened, block)
            lines += _over(opened, document.id)
        changed = FolderState(
            change_seq=documents[-1].id,
            plan=plan or state.plan,
            open=opened,
            versions=versions,
            refusals=refused if plan else state.refusals,
            named=names.named,
            loads=names.loads,
        )
        try:
            self._owned.remove_left(self._folders())
            for place in {path.parent for path, _ in files if not path.parent.is_dir()}:
                make_folder(place)
                flush(place.parent)
            self._show([*files, *self._partitions_told(lines), self._position(changed)])
        except OSError as error:
            raise self._failed(error) from error
        self._state = changed
        return refused

    def _show(self, files: Sequence[File]) -> None:
        """Makes files, and gives them their names if the folder is still ours; the last one when all others are durable."""
        parts = self._owned.hide(files)
        self._owned.show(parts[:-1], parts[-1:])

    def _folders(self) -> Iterator[Path]:
        return (Path(place) for place, _, _ in os.walk(self.folder))

    def _position(self, state: FolderState) -> File:
        return self.folder / POSITION, msgspec.json.encode(state)

    def _content(self, block: RowBlock) -> tuple[bytes, RowBlock, Notes]:
        """A file's bytes, the rows in it, and what is wrong with those that hold a value which its column cannot."""
        if self.form.format != "parquet":
            return file_bytes(block.columns, block.cells, self.form), block, []
        from pyarrow import ArrowException

        from eventlog.sinks.change_files.arrow import misfits

        try:
            return file_bytes(block.columns, block.cells, self.form), block, []
        except (ArrowException, ValueError, TypeError, OverflowError):
            bad = {block.positions[place]: why for place, why in misfits(block.columns, block.rows).items()}
            if not bad:
                raise
        if self._stop:
            why = next(iter(bad.values()))
            raise SinkError(f"{block.target} does not take a row: {why}.", hint=SET_ASIDE, may_pass=False)
        rest = [positions not in bad for positions in block.positions]
        kept = replace(
            block,
            cells=tuple([list(compress(cells, rest)) for cells in block.cells]),
            positions=list(compress(block.positions, rest)),
        )
        notes = [(position, f"{block.target}: {why}.") for positions, why in bad.items() for position in positions]
        return file_bytes(kept.columns, kept.cells, self.form), kept, notes

    def _files(
        self, names: Names, document: tuple[str, int], whole: RowBlock, version: int
    ) -> tuple[list[File], Notes]:
        """The data file and its description; none for a block that has lost all its rows."""
        started = self._now()
        data, block, why = self._content(whole)
        if not block.positions:
            return [], why
        stem = names.of(block, *document)
        said = description(
            self.form,
            stem,
            block.place,
            block,
            task=self.task,
            started=started,
            ended=self._now(),
            errors=len(why),
            version=version,
        )
        place = self.folder / block.place
        return [(place / f"{stem}.{self.form.ending}", data), (place / description_name(self.form, stem), said)], why

    def _partitions_told(self, lines: Sequence[dict[str, str]]) -> list[File]:
        """The list of partitions that may be read, with those that are over now; one stands there once."""
        if not lines:
            return []
        path = self.folder / PARTITIONS
        there = path.read_bytes().splitlines() if path.exists() else []
        more = [msgspec.json.encode({"server_name": "eventlog", "task_name": self.task, **line}) for line in lines]
        return [(path, b"".join(line + b"\n" for line in dict.fromkeys([*there, *more])))]

    def _read(self) -> FolderState:
        path = self.folder / POSITION
        if not path.exists():
            return FolderState()
        try:
            return msgspec.json.decode(path.read_bytes(), type=FolderState)
        except msgspec.DecodeError as error:
            raise DataError(
                f"{path} cannot be read: {error}.",
                hint="It says how far the change tables are; restore it from a backup.",
            ) from None

    def _failed(self, error: OSError) -> SinkError:
        return self._owned.not_written("Change tables", error)


def _version(former: tuple[int, list[tuple[str, str]]] | None, block: RowBlock) -> tuple[int, list[tuple[str, str]]]:
    columns = [(column.name, column.type) for column in block.columns]
    if former is None:
        return 1, columns
    return former[0] + (former[1] != columns), columns


def _closed(opened: dict[str, Open], block: RowBlock) -> list[dict[str, str]]:
    """What is over because the block's rows stand in the next partition; that one is open now."""
    if block.partition is None:
        return []
    former = opened.get(block.folder)
    now = Open(owner=block.table.schema or "", table=block.table.name, partition=block.partition.name)
    opened[block.folder] = now
    return [_line(former)] if former is not None and former != now else []


def _over(opened: dict[str, Open], change_seq: str) -> list[dict[str, str]]:
    """What is over because the time has come past it."""
    names = [name for name, one in opened.items() if read_partition(one.partition).closed_by(change_seq)]
    return [_line(opened.pop(name)) for name in names]


def _line(one: Open) -> dict[str, str]:
    partition = read_partition(one.partition)
    return {
        "partition_name": one.partition,
        "partition_start_time": partition.start.isoformat(" ", "milliseconds"),
        "partition_end_time": partition.end.isoformat(" ", "milliseconds"),
        "table_owner": one.owner,
        "table_name": one.table,
    }
