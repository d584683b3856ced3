"""Change tables as folders of files: each document's rows in files of their own, a description
beside each.

    <path>/<schema>.<table>__ct/[<partition>/]20240506-07080912-0000000000000004711.parquet
    and  _dfm/….dfm

Law: a file's name comes from its document and from what is durably there; `_position.json` comes
last and says what that is, and under which plan. The files of a plan stay hidden until all of them
are (`plan_folder`), so nothing is there of a plan that broke off before: what comes next may have
other rows and other numbers.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Final

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError, SinkError
from eventlog.core.model import Document, Outcome, Position
from eventlog.core.rules.meaning import refusals
from eventlog.core.seams import Resolved, SinkCapabilities, Tenure
from eventlog.qlik.change_seq import TIME_DIGITS
from eventlog.qlik.change_tables.partitions import read_partition
from eventlog.qlik.change_tables.rows import RowBlock, RowsDocument
from eventlog.sinks.change_files.dfm import description, description_name
from eventlog.sinks.change_files.row_files import file_bytes
from eventlog.sinks.change_files.settings import PARQUET, SET_ASIDE, RowFiles
from eventlog.sinks.plan_folder import PlanFolder, folders_from, not_written
from eventlog.sinks.plans import HiddenFiles, Plans

POSITION: Final = "_position.json"
PARTITIONS: Final = "attrep_cdc_partitions.jsonl"
File = tuple[PurePath, bytes]
Notes = list[tuple[Position, str]]


class Open(Struct, frozen=True, kw_only=True):
    """A partition that rows may still come into, and whose it is."""

    owner: str
    table: str
    partition: str


class FolderState(Struct, frozen=True, kw_only=True):
    """How far the folder is. `versions` counts how often a table's columns changed; `refusals` are
    of the last plan.

    `named` is the time that the last file is called by, where files are called by times; `loads`
    counts the files of full loads in each folder.
    """

    change_seq: str = ""
    plan: str = ""
    open: dict[str, Open] = {}
    versions: dict[str, tuple[int, list[tuple[str, str]]]] = {}
    refusals: Notes = []
    named: str = ""
    loads: dict[str, int] = {}


class PreparedFiles(Struct, frozen=True, kw_only=True):
    """The files of some documents, hidden, and how far the folder is once they are shown; `before`
    is how far it was.
    """

    documents: Sequence[RowsDocument]
    before: FolderState
    after: FolderState
    refused: Notes
    hidden: HiddenFiles


class Names:
    """The names of a plan's files, which go on from those that are there."""

    def __init__(self, form: RowFiles, state: FolderState) -> None:
        self._by_time = form.names == "time"
        self.named = state.named
        self.loads = dict(state.loads)

    def of(self, block: RowBlock, identity: str, number: int) -> str:
        """Name the file of a block, without its extension."""
        if block.load:
            self.loads[block.folder] = self.loads.get(block.folder, 0) + 1
            return f"LOAD{self.loads[block.folder]:08d}"
        if self._by_time:
            # Never earlier than the name before, whatever the changes' times: readers go by the
            # names.
            self.named = max(f"{identity[:TIME_DIGITS]}0", _after(self.named))
            return f"{self.named[:8]}-{self.named[8:]}"
        name = f"{identity[:8]}-{identity[8:TIME_DIGITS]}-{identity[TIME_DIGITS:]}"
        return f"{name}-{number}" if number else name


def _after(named: str) -> str:
    """Return the next millisecond, so that no name is given twice."""
    if not named:
        return ""
    # Of changes whose time nobody knows: a year 0, which strptime does not take.
    if named.startswith("0000"):
        return f"{int(named) + 1:017d}"
    at = dt.datetime.strptime(f"{named}000", "%Y%m%d%H%M%S%f") + dt.timedelta(milliseconds=1)
    return f"{at.year:04d}{at:%m%d%H%M%S}{at.microsecond // 1000:03d}"


class ChangeTableFiles:
    """Writes the rows of documents into folders of change tables."""

    capabilities = SinkCapabilities(resolves=True)

    def __init__(
        self,
        target: Path | Plans,
        form: RowFiles = PARQUET,
        task: str = "eventlog",
        *,
        stop: bool = False,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        self._plans: Plans = PlanFolder(target, self._folders) if isinstance(target, Path) else target
        self.folder = self._plans.folder
        self._now = now
        self.form = form
        self.task = task
        self._stop = stop
        self._state = FolderState()
        self._prepared: dict[str, PreparedFiles] = {}

    def open(self, tenure: Tenure | None) -> None:
        """Takes the folder over, and reads how far it is."""
        # What was prepared goes on from what was there when the lock was held before.
        self._forget_prepared()
        try:
            self._plans.take_over(tenure)
            self._state = self._read()
        except OSError as error:
            raise self._make_error(error) from error

    def last(self) -> str:
        """Return the change_seq of the last document durably there."""
        return self._state.change_seq

    def resolve(self, plan: str) -> Resolved:
        """Shows the rest of a plan that was begun.

        Of one that was not nothing is there, nor hidden any more.
        """
        self._forget_prepared()
        try:
            self._plans.finish_former()
            self._state = self._read()
        except OSError as error:
            raise self._make_error(error) from error
        if not self._has(plan):
            return Resolved(last=self._state.plan, documents=frozenset())
        answers = tuple(refusals(self._state.refusals))
        return Resolved(last=self._state.plan, documents=None, answers=answers)

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        """Writes files of each document under names that nobody looks at."""
        rows = _rows_of(documents)
        if plan and rows and not self._has(plan):
            self._forget_prepared()
            self._prepared[plan] = self._make_files(plan, rows)

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        """Shows the files of each document, durable when it returns.

        Answers which events have no row there.
        """
        rows, state = _rows_of(documents), self._state
        if self._has(plan):
            return refusals(state.refusals)
        if not rows:
            return refusals(())
        prepared = self._prepared.pop(plan, None)
        if prepared is not None and (prepared.before is not state or prepared.documents != rows):
            prepared.hidden.discard()  # their names would not go on from what is there now
            prepared = None
        made = prepared or self._make_files(plan, rows)
        try:
            self._plans.show(made.hidden, apart=1)
        except OSError as error:
            raise self._make_error(error) from error
        self._state = made.after
        return refusals(made.refused)

    def close(self) -> None:
        self._forget_prepared()

    def _has(self, plan: str) -> bool:
        """Return True if this plan was the last one shown."""
        return bool(plan) and plan == self._state.plan

    def _forget_prepared(self) -> None:
        while self._prepared:
            self._prepared.popitem()[1].hidden.discard()

    def _make_files(self, plan: str, documents: Sequence[RowsDocument]) -> PreparedFiles:
        """Write the files of documents, hidden until all of them are shown together."""
        state = self._state
        versions, opened = dict(state.versions), dict(state.open)
        lines: list[dict[str, str]] = []
        refused: Notes = []
        files: list[File] = []
        names = Names(self.form, state)
        for document in documents:
            for number, block in enumerate(document.blocks):
                versions[block.folder] = _version(versions.get(block.folder), block)
                more, why = self._files(names, (document.id, number), block, versions[block.folder][0])
                files += more
                refused += why
                lines += _close_partitions(opened, block)
            lines += _over(opened, document.id)
        after = FolderState(
            change_seq=documents[-1].id,
            plan=plan or state.plan,
            open=opened,
            versions=versions,
            refusals=refused if plan else state.refusals,
            named=names.named,
            loads=names.loads,
        )
        try:
            # Hidden files lie in the folders where they will be shown.
            for folder in {path.parent for path, _ in files}:
                self._plans.make(folder)
            if lines:
                files.append(self._partitions(lines))
            # The position comes last: what it names is there before it.
            files.append((self.folder / POSITION, msgspec.json.encode(after)))
            hidden = self._plans.hide(plan or secrets.token_hex(8), files)
        except OSError as error:
            raise self._make_error(error) from error
        return PreparedFiles(documents=documents, before=state, after=after, refused=refused, hidden=hidden)

    def _folders(self) -> Iterator[Path]:
        return folders_from(self.folder, dotted=True)  # as the name of a table may be

    def _content(self, block: RowBlock) -> tuple[bytes, RowBlock, Notes]:
        """Write a block; return the file's bytes, the rows in it and notes on rows left out."""
        if self.form.format != "parquet":
            return file_bytes(block.columns, block.cells, self.form), block, []
        from pyarrow import ArrowException

        from eventlog.sinks.change_files.arrow import misfits

        try:
            return file_bytes(block.columns, block.cells, self.form), block, []
        except (ArrowException, ValueError, TypeError, OverflowError):
            # Only now is each row looked at: whole columns are made many times faster.
            problems = misfits(block.columns, block.rows)
            bad = {block.positions[index]: why for index, why in problems.items()}
            if not bad:  # the error is about the file, and no row of it
                raise
        if self._stop:
            why = next(iter(bad.values()))
            raise SinkError(
                f"{block.target} does not take a row: {why}.",
                hint=SET_ASIDE,
                may_pass=False,
            )
        kept = block.without(bad)
        notes = []
        for positions, why in bad.items():  # a change of two rows is one object of positions
            notes += [(position, f"{block.target}: {why}.") for position in positions]
        return file_bytes(kept.columns, kept.cells, self.form), kept, notes

    def _files(
        self, names: Names, document: tuple[str, int], whole: RowBlock, version: int
    ) -> tuple[list[File], Notes]:
        """Write the data file and its description; no files if every row was left out."""
        started = self._now()
        data, block, why = self._content(whole)
        if not block.positions:
            return [], why
        stem = names.of(block, *document)
        text = description(
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
        folder = self.folder / block.place
        data_file = folder / f"{stem}.{self.form.ending}"
        return [(data_file, data), (folder / description_name(self.form, stem), text)], why

    def _partitions(self, lines: Sequence[dict[str, str]]) -> File:
        """Return the list of readable partitions, with the newly closed ones added."""
        path = self.folder / PARTITIONS
        # By their lines, so that one stands there once.
        listed = dict.fromkeys((self._plans.read(path) or b"").splitlines())
        for line in lines:
            entry = {"server_name": "eventlog", "task_name": self.task, **line}
            listed[msgspec.json.encode(entry)] = None
        return path, b"".join(line + b"\n" for line in listed)

    def _read(self) -> FolderState:
        path = self.folder / POSITION
        content = self._plans.read(path)
        if content is None:
            return FolderState()
        try:
            return msgspec.json.decode(content, type=FolderState)
        except msgspec.DecodeError as error:
            raise DataError(
                f"{path} cannot be read: {error}.",
                hint="It says how far the change tables are; restore it from a backup.",
            ) from None

    def _make_error(self, error: OSError) -> SinkError:
        return not_written("Change tables", self.folder, error)


def _rows_of(documents: Sequence[Document]) -> list[RowsDocument]:
    return [document for document in documents if isinstance(document, RowsDocument)]


def _version(
    former: tuple[int, list[tuple[str, str]]] | None,
    block: RowBlock,
) -> tuple[int, list[tuple[str, str]]]:
    columns = [(column.name, column.type) for column in block.columns]
    if former is None:
        return 1, columns
    return former[0] + (former[1] != columns), columns


def _close_partitions(opened: dict[str, Open], block: RowBlock) -> list[dict[str, str]]:
    """Open the block's partition; return the one this closes."""
    if block.partition is None:
        return []
    former = opened.get(block.folder)
    now = Open(owner=block.table.schema or "", table=block.table.name, partition=block.partition.name)
    opened[block.folder] = now
    if former is None or former == now:
        return []
    return [_line(former)]


def _over(opened: dict[str, Open], change_seq: str) -> list[dict[str, str]]:
    """Close the partitions `change_seq` is past; return their lines."""
    over = [name for name, still in opened.items() if read_partition(still.partition).is_closed_by(change_seq)]
    return [_line(opened.pop(name)) for name in over]


def _line(closed: Open) -> dict[str, str]:
    partition = read_partition(closed.partition)
    return {
        "partition_name": closed.partition,
        "partition_start_time": partition.start.isoformat(" ", "milliseconds"),
        "partition_end_time": partition.end.isoformat(" ", "milliseconds"),
        "table_owner": closed.owner,
        "table_name": closed.table,
    }
