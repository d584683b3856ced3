"""Which columns go where in SCIM: the keys of [output.scim]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from eventlog.core.errors import ConfigError
from eventlog.core.seams import OnValue
from eventlog.sinks.scim.paths import CORE_GROUP, CORE_USER, ENTERPRISE_USER, Path, read_path

ValueType = Literal["", "string", "boolean", "integer", "decimal", "dateTime"]

KNOWN_TYPES: Final = {
    "User": ("/Users", CORE_USER, "userName"),
    "Group": ("/Groups", CORE_GROUP, "displayName"),
}
"""What RFC 7643 says of its types: where they are, their schema, and by what people tell them apart."""

BOOLEANS: Final = frozenset({"active", "primary"})
"""Attributes of the core schema that are true or false; all others are texts."""


class ColumnSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a column goes. `references` is the table whose object it names; an empty text says that it
    names none, though a foreign key says so.
    """

    path: str
    type: ValueType = ""
    references: str | None = None


class ResourceSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the rows of a table are. `unique` is the path that no two have alike, by which a resource is found that
    is there already. With `delete` = disable a deleted row's resource stays, with `active` = false.
    """

    columns: Mapping[str, str | ColumnSettings]
    type: str = "User"
    endpoint: str = ""
    schema: str = ""
    unique: str = ""
    delete: Literal["delete", "disable"] = "delete"

    @property
    def place(self) -> str:
        """Return the path of its resources below the address."""
        return self.endpoint or KNOWN_TYPES[self.type][0]

    @property
    def core(self) -> str:
        """Return the schema of its resources."""
        return self.schema or KNOWN_TYPES[self.type][1]

    @property
    def unique_path(self) -> str:
        """Return the path whose value is unique among resources."""
        return self.unique or KNOWN_TYPES[self.type][2]

    @property
    def enables(self) -> bool:
        """Return True if a row that is there enables its resource; where a column says `active`, it decides alone."""
        # A resource may have been there before, and was disabled.
        return self.delete == "disable" and not any(
            str(column.path).lower() == "active" for column in list_columns(self, "columns")
        )

    @property
    def is_unique_for_servers(self) -> bool:
        """Tell whether every server refuses a second resource with the same value."""
        return self.type == "User" and self.unique_path == "userName"


class MappedColumn(Struct, frozen=True, kw_only=True):
    """A column, and where it goes."""

    name: str
    path: Path
    type: ValueType
    references: str | None


class ScimSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Users, groups and other resources of SCIM, by the tables that they come from."""

    tables: Mapping[str, ResourceSettings]
    mode: Literal["scim", "entra"] = "scim"
    on_value: OnValue = "refuse-object"

    def __post_init__(self) -> None:
        """Refuse what no request can be made of."""
        if not self.tables:
            raise ConfigError("output.scim.tables is empty; name a table, with the columns that go to SCIM.")
        for name, table in self.tables.items():
            where = f"output.scim.tables.{name}"
            if self.mode == "entra":
                _refuse_for_entra(table, where)
            elif table.type not in KNOWN_TYPES and not (table.endpoint and table.schema and table.unique):
                known = " or ".join(KNOWN_TYPES)
                raise ConfigError(
                    f"{where}.type is {table.type!r}; it is {known}, or `endpoint`, `schema` and `unique` say more."
                )
            if not table.place.startswith("/") or not table.place.isascii() or set(table.place) & set(" ?#{}"):
                raise ConfigError(f"{where}.endpoint is {table.place!r}; it is written as /Users.")
            unique = self.unique_path(table)
            if read_path(unique, f"{where}.unique").attribute.lower() == "externalid" and self.mode != "entra":
                raise ConfigError(f"{where}.unique is externalId, and servers find nothing by it; name another path.")
            columns = list_columns(table, where)
            if not columns:
                raise ConfigError(f"{where}.columns is empty; name the columns that go to SCIM.")
            paths = [str(column.path).lower() for column in columns]
            if str(read_path(unique, where)).lower() not in paths:
                raise ConfigError(
                    f"{where}.columns has nothing that goes to {unique}, which is its unique path; name a column for it."
                )
            for path in paths:
                if paths.count(path) > 1:
                    raise ConfigError(f"{where}.columns has two columns that go to {path}; leave one.")
            if table.delete == "disable" and table.type != "User":
                raise ConfigError(f"{where}.delete is disable, and a {table.type} cannot be disabled; only a User can.")

    def unique_path(self, table: ResourceSettings) -> str:
        """Name the path that no two resources of a table have alike."""
        return "externalId" if self.mode == "entra" else table.unique_path


def _refuse_for_entra(table: ResourceSettings, where: str) -> None:
    """Refuse what Microsoft Entra's bulkUpload does not take: users alone, known by externalId, never deleted."""
    if table.type != "User" or table.endpoint or table.schema:
        raise ConfigError(f"{where} is no User, and bulkUpload takes users alone; leave type, endpoint and schema out.")
    if table.unique not in ("", "externalId"):
        raise ConfigError(f"{where}.unique is {table.unique}, and bulkUpload finds users by externalId; leave it out.")
    if table.delete != "disable":
        raise ConfigError(f'{where}.delete is delete, and bulkUpload deletes nobody; write delete = "disable".')


def list_columns(table: ResourceSettings, where: str) -> list[MappedColumn]:
    """List the columns of a table that go to SCIM."""
    columns: list[MappedColumn] = []
    for name, column in table.columns.items():
        setting = ColumnSettings(path=column) if isinstance(column, str) else column
        path = read_path(setting.path, f"{where}.columns.{name}")
        columns.append(
            MappedColumn(name=name, path=path, type=setting.type or _type_of(path), references=setting.references)
        )
    return columns


def _type_of(path: Path) -> ValueType:
    """Tell the type of a value; "" is that of the column, for only an extension's owner knows it."""
    if (path.sub or path.attribute) in BOOLEANS and not path.urn:
        return "boolean"
    return "string" if path.urn.lower() in ("", ENTERPRISE_USER.lower()) else ""
