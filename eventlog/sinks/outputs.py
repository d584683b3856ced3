"""The sinks that need no package beside eventlog: files in a folder, standard output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from eventlog.core.errors import ConfigError
from eventlog.core.outputs import OutputKeys, PlaceKind, Places
from eventlog.core.plugins import EVERY_DOCUMENT, Finding, Need, SinkOrder, SinkPlugin
from eventlog.core.seams import Sink
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.change_files.settings import RowFileSettings, RowFormat
from eventlog.sinks.store.address import MODULE, StoreSettings, is_address, refuse_unknown, target_of


class FilesOutput(
    OutputKeys,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="sink",
    tag="files",
):
    """Documents as files in a folder, or as objects in a store."""

    path: str
    format: str = "xds"
    file_format: RowFormat | None = None
    row_files: RowFileSettings = RowFileSettings()
    task: str = "eventlog"
    on_refused: Literal["set-aside", "stop"] = "set-aside"
    change_tables: ChangeTableSettings = ChangeTableSettings()
    messages: MessageSettings = MessageSettings()
    store: StoreSettings = StoreSettings()

    def __post_init__(self) -> None:
        """Refuses an address that is none of an object store."""
        refuse_unknown("output.path", self.path)
        if self.store != StoreSettings() and not is_address(self.path):
            message = "output.store is about an object store, and output.path is a folder."
            raise ConfigError(message, hint="Leave it out, or make output.path an address: s3://….")
        for name in ("file_format", "row_files"):
            if self.format != "change-tables" and getattr(self, name) not in (None, RowFileSettings()):
                message = f'output.{name} is about files of change tables, and output.format is "{self.format}".'
                raise ConfigError(message, hint='Leave it out, or set format = "change-tables".')

    @property
    def row_format(self) -> RowFormat:
        """Return the form of files of change tables."""
        return self.file_format or "parquet"

    @property
    def places(self) -> Places:
        """Name the output's places: folders of documents or tables, or topics of messages."""
        if self.format == "messages":
            return "topic", "files", (self.messages.metadata_topic,)
        if self.format == "change-tables":
            return "table", "files", ()
        return "folder", "files", ()


class StdoutOutput(
    OutputKeys,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="sink",
    tag="stdout",
):
    """Documents on standard output."""

    format: str = "xds"
    messages: MessageSettings = MessageSettings()

    @property
    def places(self) -> Places:
        """Name the output's places: topics of messages; other formats have none."""
        kind: PlaceKind | None = "topic" if self.format == "messages" else None
        return kind, "standard output", (self.messages.metadata_topic,)


def _file_sink(order: SinkOrder) -> Sink:
    from eventlog.sinks.files import FileSink

    # In order: the greatest id that is there is how far the output is.
    target = target_of(order.output.path, order.output.store, ordered=True)
    return FileSink(target, order.format.suffix)


def _stdout_sink(_order: SinkOrder) -> Sink:
    from eventlog.sinks.stdout import StdoutSink

    return StdoutSink()


def _needs(output: FilesOutput) -> Iterator[Need]:
    if is_address(output.path):
        scheme = output.path.partition("://")[0]
        yield Need(f'An output with path = "{scheme}://…"', MODULE)
    if (output.format, output.row_format) == ("change-tables", "parquet"):
        yield Need('An output with file_format = "parquet"', "pyarrow")


def _find_target(output: FilesOutput) -> Iterator[Finding]:
    from eventlog.sinks.store.findings import target_findings

    yield from target_findings(output.path, output.store)


def _folder_place(output: FilesOutput) -> str:
    kind = "change tables" if output.format == "change-tables" else "files"
    path = output.path if is_address(output.path) else Path(output.path).resolve()
    return f"{kind} {path}"


FILES: Final = SinkPlugin(
    settings=FilesOutput,
    build=_file_sink,
    place=_folder_place,
    formats=("change-tables", "messages", "xds", EVERY_DOCUMENT),
    check=_find_target,
    needs=_needs,
    sorts_ids=True,
)
STDOUT: Final = SinkPlugin(
    settings=StdoutOutput,
    build=_stdout_sink,
    place=lambda _: "stdout",
    formats=("messages", "xds", EVERY_DOCUMENT),
    check=lambda _: [Finding(message="standard output needs nothing")],
)
