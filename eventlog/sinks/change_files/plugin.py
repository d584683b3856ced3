"""The format `change-tables`: rows for a database, or files of rows in a folder."""

from __future__ import annotations

from typing import Final

from eventlog.core.plugins import FormatOrder, FormatPlugin, SinkOrder
from eventlog.core.seams import Format, Sink
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.sinks.store.address import target_of


def _format(order: FormatOrder) -> Format:
    from eventlog.qlik.change_tables.format import ChangeTableFormat

    row_files = getattr(order.output, "row_files", None)  # of folders alone
    # Loads come as files of their own only where the preset, or a key, says so.
    loads = False
    if row_files is not None:
        loads = row_files.choose_files(order.output.row_format).full_load == "files"
    limits = order.output.limits
    if row_files is not None:
        limits = row_files.choose_files(order.output.row_format).limits
    return ChangeTableFormat(settings=order.settings, loads=loads, limits=limits, who=order.output.who)


def _folder(order: SinkOrder) -> Sink:
    from eventlog.sinks.change_files.sink import ChangeTableFiles

    output = order.output
    files = output.row_files.choose_files(output.row_format)
    target = target_of(output.path, output.store, ordered=False)
    return ChangeTableFiles(target, files, output.task, stop=output.on_refused == "stop")


CHANGE_TABLES: Final = FormatPlugin(build=_format, settings=ChangeTableSettings, content="other", folder=_folder)
