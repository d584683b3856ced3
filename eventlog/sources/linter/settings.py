"""What can be set about reading LINTER's queue: pure reading, and where the queue is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from eventlog.core.errors import ConfigError
from eventlog.core.secrets import SecretSettings
from eventlog.sources.linter.layouts import ByteOrder, check_code_page
from eventlog.sources.linter.operations import Coding

Variant = Literal["dispatch", "receiving"]


class ReadingSettings(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How rows are read, wherever they come from.

    `coding` says which operation a TYP is, and `unknown_end` what is done where it leaves open
    whether a transaction was committed. `codec` reads records, `codecs` names others by table;
    `code_pages` are by table or `table.column`. `destination` takes the rows for one server only.
    `pad_data` puts back zeros that a driver took off DATA. `blob_pieces` says where the piece of an
    INSERT BLOB is, if the site knows. `zone` is that of OPER_DATE. `spill_bytes` is how much open
    transactions may hold in memory.
    """

    variant: Variant = "dispatch"
    coding: Coding = "table"
    unknown_end: Literal["error", "commit", "rollback"] = "error"
    destination: str = ""
    codec: str = "packed-v1"
    codecs: Mapping[str, str] = {}
    byte_order: ByteOrder = "little"
    null_mask: bool = True
    strict: bool = True
    code_page: str = "ascii"
    code_pages: Mapping[str, str] = {}
    names_code_page: str = "ascii"
    pad_data: bool = False
    blob_pieces: Literal["unknown", "part2"] = "unknown"
    zone: str = "UTC"
    spill_bytes: int = 32_000_000

    def __post_init__(self) -> None:
        for page in (self.code_page, self.names_code_page, *self.code_pages.values()):
            check_code_page(page)
        if self.spill_bytes < 1:
            raise ConfigError(f"source.linter.spill_bytes is {self.spill_bytes}; it must be 1 or more.")


class LinterSettings(ReadingSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The queue of a live database.

    `marks` is the file that keeps the position. Without a SQLAlchemy URL, `driver` names a module
    with the DB-API and `connect` what its `connect` takes. `arrival` is the column by which a
    receiving queue is ordered. `delete_handled` deletes transactions that are published whole.
    """

    queue: str = ""
    marks: str = "linter-marks.json"
    driver: str = ""
    connect: Mapping[str, str | int] = {}
    arrival: str = "ROWID"
    delete_handled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        # A transaction's rows for all destinations would go, also those that were not published.
        if self.delete_handled and self.destination:
            raise ConfigError(
                "source.linter.delete_handled removes whole transactions,"
                " and destination names one of those they are for.",
                hint="Leave one of the two out.",
            )
        if self.delete_handled and self.variant == "receiving":
            raise ConfigError(
                "source.linter.delete_handled does not know the nodes of a receiving queue from each other;"
                " leave it out."
            )

    @property
    def table(self) -> str:
        """Return the queue's table, by default the documented one of its variant."""
        if self.queue:
            return self.queue
        return "DISPATCH_QUEUE" if self.variant == "dispatch" else "RECEIVING_QUEUE"
