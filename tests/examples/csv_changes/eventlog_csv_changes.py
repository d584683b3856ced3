"""The source `csv-changes`: a growing CSV file of changes, a line each: `op`, `at` and the columns of one table."""

import csv
import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from eventlog.plugins import (
    Catalog,
    Column,
    DataError,
    Image,
    Op,
    SourceError,
    SourcePlugin,
    StreamPiece,
    Table,
)


class CsvChanges(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of `[source.csv_changes]`."""

    path: str
    table: str = "rows"
    key: str = "id"
    marks: str = "csv-marks.json"


class CsvReader:
    def __init__(self, settings: CsvChanges) -> None:
        self._settings = settings

    def pieces(self, begin: int) -> Iterator[StreamPiece | None]:
        try:
            with Path(self._settings.path).open("rb") as file:
                names: list[str] = []
                while True:
                    place, line = file.tell(), file.readline()
                    if not line.endswith(b"\n"):  # the end, or a line that is still being written
                        file.seek(place)
                        yield None
                    elif not names:
                        names = next(csv.reader([line.decode()]))
                        file.seek(max(begin, file.tell()))
                    else:
                        yield self._piece(dict(zip(names, next(csv.reader([line.decode()])), strict=True)), file.tell())
        except OSError as error:
            raise SourceError(f"{self._settings.path} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise DataError(f"{self._settings.path} is damaged: {error}.") from error

    def acknowledge(self, images: Sequence[object], begin: int) -> None:
        """The file stays as it is."""

    def close(self) -> None:
        """The file is closed with its iterator."""

    def _piece(self, row: dict[str, str], end: int) -> StreamPiece:
        op, at = Op(row.pop("op")), dt.datetime.fromisoformat(row.pop("at"))
        columns = [Column(name=name, type="varchar", key=1 if name == self._settings.key else None) for name in row]
        catalog = Catalog([Table(name=self._settings.table, columns=tuple(columns))])
        before, after = (row, None) if op is Op.DELETE else (None, row)
        image = Image(position=(end,), op=op, table=self._settings.table, before=before, after=after, time=at)
        return StreamPiece(images=[image], catalog=catalog, commit=end, begin=end)


CSV_CHANGES = SourcePlugin(
    settings=CsvChanges,
    build=lambda order: CsvReader(order.settings),
    marks=lambda settings: settings.marks,
    title="changes in CSV",
    address=lambda settings: settings.path,
)
