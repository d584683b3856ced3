"""The settings of a GBase 8s or Informix source: how its stream is read, and where it comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from eventlog.core.errors import ConfigError
from eventlog.core.secrets import SecretSettings
from eventlog.sources.gbase.records import RECORD_BYTES
from eventlog.sources.gbase.rows import Order
from eventlog.sources.gbase.values import TextRules


class GBaseSettings(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a stream is read, and where it comes from.

    `tables` gives the labels of the stream (userdata) their tables: `{"111" = "shop.t1"}`, for a
    server with the database before it, `stores:shop.t1`. `keys` gives tables their key columns,
    `columns` says which are captured. `path` is a file of captured bytes, or a folder of them;
    without it `driver` names what talks to a server, as `module:callable` or `jdbc`.
    """

    tables: Mapping[str, str] = {}
    keys: Mapping[str, tuple[str, ...]] = {}
    columns: Mapping[str, tuple[str, ...]] = {}
    encoding: str = "utf-8"
    invalid_text: Literal["strict", "replace", "bytes"] = "strict"
    trim: bool = False
    sizes: Order = "auto"
    dirty: bool = False
    largest_record: int = RECORD_BYTES
    skip_schemes: bool = False
    orphans: Literal["open", "skip"] = "open"
    unknown_rows: Literal["report", "fail"] = "report"
    memory: int = 256
    spill: str | None = None
    path: str | None = None
    driver: str = ""
    url: str = ""
    classpath: tuple[str, ...] = ()
    server: str = ""
    owner: str = "informix"
    minor_version: Literal[0, 1] = 1
    timeout: int = 1
    max_records: int = 256
    marks: str = "gbase-marks.json"

    def __post_init__(self) -> None:
        for name, low, high in (
            ("largest_record", 1024, 2**31 - 1),
            ("memory", 1, 1_048_576),
            ("timeout", -1, 86_400),
            ("max_records", 1, 256),
        ):
            if not low <= getattr(self, name) <= high:
                raise ConfigError(f"source.gbase.{name} is {getattr(self, name)}; it must be between {low} and {high}.")
        for label in self.tables:
            if not re.fullmatch("-?[0-9]{1,10}", label) or not -(2**31) <= int(label) < 2**31:
                raise ConfigError(f"source.gbase.tables has the label {label}; labels are whole numbers of 32 bits.")
        assert self.texts.codec

    @property
    def texts(self) -> TextRules:
        return TextRules(encoding=self.encoding, invalid=self.invalid_text, trim=self.trim)
