"""The settings of tables of a lake: where they stand, and whether they are change tables or
mirrors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from eventlog.core.errors import ConfigError
from eventlog.core.limits import ColumnLimits
from eventlog.core.outputs import OutputKeys, Places
from eventlog.qlik.change_tables.settings import ChangeTableSettings, Header
from eventlog.sinks.store.address import StoreSettings, is_address, refuse_unknown

MIRRORED: tuple[Header, ...] = ("change_oper", "change_mask")
"""Without these header columns nobody knows what a row does to a mirror."""


class LakeSettings(OutputKeys, frozen=True, kw_only=True):
    """`task` names the plans there: two publishers into one folder have two. With `mode` "append"
    the rows of change tables are added to one table for each source table; with "mirror" a table is
    kept equal to its source. New tables are partitioned by those of the columns `partition_by` that
    they have.
    """

    path: str
    format: Literal["change-tables"] = "change-tables"
    mode: Literal["append", "mirror"] = "append"
    task: str = "eventlog"
    partition_by: tuple[str, ...] = ()
    on_refused: Literal["set-aside", "stop"] = "set-aside"
    change_tables: ChangeTableSettings = ChangeTableSettings()
    store: StoreSettings = StoreSettings()

    def __post_init__(self) -> None:
        """Refuses what no tables could be made with."""
        # Before anything is looked for below it.
        refuse_unknown("output.path", self.path)
        if self.store != StoreSettings() and not is_address(self.path):
            message = "output.store is about an object store, and output.path is a folder."
            raise ConfigError(message, hint="Leave it out, or make output.path an address: s3://….")
        if not self.task or not self.task.replace("-", "").replace("_", "").isalnum():
            problem = "output.task is made of letters, digits, _ and -"
            raise ConfigError(f"{problem}; it is the name of a folder.")
        if self.mode == "append":
            return
        for header in MIRRORED:
            if header not in self.change_tables.headers:
                message = f'output.mode is "mirror", and change_tables.headers has no {header}.'
                raise ConfigError(message, hint="Add it; or append the rows.")
        if not self.change_tables.before_image:
            message = 'output.mode is "mirror", and change_tables.before_image is false.'
            hint = "Leave it out: a key that changes is known by the row before."
            raise ConfigError(message, hint=hint)

    @property
    def limits(self) -> ColumnLimits:
        """Return what columns of a lake can hold."""
        return ColumnLimits()

    @property
    def places(self) -> Places:
        """Name the output's places: tables of a lake."""
        return "table", "a lake", ()


class DeltaSettings(LakeSettings, frozen=True, kw_only=True):
    """Every so many plans a table's small files are put together; 0 is never."""

    optimize_every: int = 0

    def __post_init__(self) -> None:
        """Refuses a number that means nothing."""
        LakeSettings.__post_init__(self)
        if self.optimize_every < 0:
            raise ConfigError("output.optimize_every is below 0; it counts plans, and 0 is never.")


class IcebergSettings(LakeSettings, frozen=True, kw_only=True):
    """`catalog` are the properties of the catalog as PyIceberg has them: name, type, uri, warehouse
    and others; readers of a catalog in a database must call it by the same name. Tables stand in a
    namespace that is called as the schema of their source; those of tables without a schema in
    `namespace`. `path` is where plans wait, and the warehouse where the catalog names none.
    """

    catalog: dict[str, Any]
    namespace: str = "eventlog"

    def __post_init__(self) -> None:
        """Refuses a catalog that is none."""
        LakeSettings.__post_init__(self)
        if not self.catalog.get("type") and not self.catalog.get("uri"):
            forms = '{ type = "sql", uri = "sqlite:////data/catalog.db" }'
            hint = f'As {forms}, or {{ type = "rest", uri = "https://…" }}.'
            raise ConfigError("output.catalog has neither a type nor a uri.", hint=hint)

    @property
    def properties(self) -> dict[str, Any]:
        """Merge the given properties with those derived from other settings."""
        properties = {
            "name": "eventlog",
            "s3.endpoint": self.store.endpoint,
            "s3.region": self.store.region,
            "warehouse": self.path,
        }
        if not is_address(self.path):
            properties["warehouse"] = f"file://{Path(self.path).absolute()}"
        # What stands in the configuration comes before what follows from it.
        return {name: value for name, value in properties.items() if value} | self.catalog
