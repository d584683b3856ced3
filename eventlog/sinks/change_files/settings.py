"""How files of change tables are written: what can be set, and what holds where nothing is
set.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from eventlog.core.errors import ConfigError
from eventlog.core.limits import ColumnLimits

RowFormat = Literal["parquet", "csv", "json"]
SET_ASIDE: Final = (
    'Correct the table or the row; or set output.on_refused = "set-aside", which marks such rows as errors.'
)


class RowFiles(Struct, frozen=True, kw_only=True):
    """Files of rows as they are written."""

    format: RowFormat = "parquet"
    header: bool = True
    delimiter: str = ","
    null_value: str = "\\N"
    quote: str = '"'
    gzip: bool = False
    names: Literal["change_seq", "time"] = "change_seq"
    full_load: Literal["rows", "files"] = "rows"
    descriptions: Literal["beside", "apart"] = "beside"

    @property
    def limits(self) -> ColumnLimits | None:
        """Return what columns can hold: Parquet's are typed; text holds all, so None."""
        return ColumnLimits() if self.format == "parquet" else None

    @property
    def ending(self) -> str:
        """Return the extension of the files."""
        if self.gzip:
            return f"{self.format}.gz"
        return self.format

    @property
    def format_name(self) -> str:
        """Return the format's name for descriptions."""
        if self.format == "csv":
            return "delimited"
        return self.format

    @property
    def format_options(self) -> dict[str, str]:
        """Return the options of CSV for descriptions."""
        if self.format != "csv":
            return {}
        return {
            "fieldDelimiter": self.delimiter,
            "recordDelimiter": "\n",
            "nullValue": self.null_value,
            "quoteChar": self.quote,
            # A quote in quotes is written twice.
            "escapeChar": self.quote,
        }


PRESETS: Final = {
    "eventlog": RowFiles(),
    "qlik": RowFiles(header=False, null_value="", gzip=True, names="time", full_load="files"),
}


class RowFileSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is set for files of change tables; the preset has the rest."""

    preset: Literal["eventlog", "qlik"] = "eventlog"
    header: bool | None = None
    delimiter: str | None = None
    null_value: str | None = None
    quote: str | None = None
    gzip: bool | None = None
    names: Literal["change_seq", "time"] | None = None
    full_load: Literal["rows", "files"] | None = None
    descriptions: Literal["beside", "apart"] | None = None

    def __post_init__(self) -> None:
        """Refuses what no reader could take apart."""
        for name in ("delimiter", "quote"):
            sign = getattr(self, name)
            if sign is not None and (len(sign) != 1 or sign in "\r\n"):
                problem = f"row_files.{name} is {sign!r}"
                raise ConfigError(f"{problem}; it must be one character, and no end of a line.")
        delimiter, quote = self.delimiter or ",", self.quote or '"'
        if self.delimiter is not None and delimiter == quote:
            raise ConfigError("row_files.delimiter and row_files.quote are the same character; choose another one.")
        signs = {"\r", "\n", delimiter, quote}
        if self.null_value is not None and not signs.isdisjoint(self.null_value):
            raise ConfigError(
                "row_files.null_value holds the delimiter, the quote or the end of a line; choose another text."
            )

    def choose_files(self, form: RowFormat) -> RowFiles:
        """Merge these settings with the preset; raise ConfigError for one the format lacks."""
        if form == "parquet" and self.gzip:
            raise ConfigError(
                "row_files.gzip cannot be combined with Parquet, which is compressed;"
                " leave it out, or write CSV or JSON."
            )
        chosen = {name: value for name, value in asdict(self).items() if name != "preset" and value is not None}
        preset = PRESETS[self.preset]
        if form == "parquet":
            # Spark reads no folder in which another file stands beside those of Parquet.
            descriptions = "apart" if self.preset == "eventlog" else "beside"
            preset = replace(preset, gzip=False, descriptions=descriptions)
        return replace(preset, format=form, **chosen)


PARQUET: Final = RowFileSettings().choose_files("parquet")
