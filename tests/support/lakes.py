"""Lakes under test: their sinks, and what stands in their tables as a reader of that kind finds it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from msgspec import Struct
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

from eventlog.core.model import Change, Op
from eventlog.qlik.change_tables.rows import RowsDocument
from eventlog.sinks.lake import catalogs as lake_catalogs
from eventlog.sinks.lake import iceberg as lake_tables
from eventlog.sinks.lake.delta import DeltaTables, schema_of, storage_options
from eventlog.sinks.lake.iceberg import IcebergTables
from eventlog.sinks.lake.plugin import DeltaOutput, IcebergOutput
from eventlog.sinks.lake.rows import plain_schema
from eventlog.sinks.lake.settings import LakeSettings
from eventlog.sinks.lake.sink import LakeSink, LakeTables
from tests.support.changerows import documents, told
from tests.support.servers import found
from tests.support.servers_store import ENVIRONMENT, SECRET, StoreServer
from tests.support.sinks import opened, tenure

Mode = Literal["append", "mirror"]
_catalogs: list[Catalog] = []


def open_catalog(**properties: Any) -> Catalog:
    """Open a catalog, closed after the test even if its publisher dies there."""
    _catalogs.append(lake_catalogs.open_catalog(properties))
    return _catalogs[-1]


def close_catalogs() -> None:
    """Closes those of a test."""
    while _catalogs:
        _catalogs.pop().close()


lake_tables.open_catalog = lambda properties: open_catalog(**properties)  # type: ignore[attr-defined]  # what the sink calls


class Lake(Struct, frozen=True, kw_only=True):
    """A lake. `tables` makes another reader and writer of it, `read` gives the rows of a table,
    None where there is none.
    """

    settings: LakeSettings
    tables: Callable[[], LakeTables]
    read: Callable[[str], pa.Table | None]

    def sink(self, epoch: int = 1) -> LakeSink:
        """Open a sink for the publisher of this epoch."""
        return opened(LakeSink(self.settings, self.tables()), tenure(epoch))

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Read a table's rows in order of their changes or keys."""
        found = self.read(name)
        rows = [] if found is None else found.to_pylist()
        key = "idg" if name.startswith("grp") else "idu"
        return sorted(rows, key=lambda row: (row.get("header__change_seq", ""), row[key]))

    def keys(self, name: str) -> list[int]:
        return [row["idg" if name.startswith("grp") else "idu"] for row in self.rows(name)]


def delta(path: Path | str, mode: Mode = "append", **chosen: Any) -> Lake:
    chosen.pop("catalog_folder", None)
    settings = DeltaOutput(path=str(path), mode=mode, **chosen)
    options = storage_options(settings)

    def read(name: str) -> pa.Table | None:
        place = DeltaTables(settings).location(name)
        if not DeltaTable.is_deltatable(place, options):
            return None
        return delta_rows(DeltaTable(place, storage_options=options))

    return Lake(settings=settings, tables=lambda: DeltaTables(settings), read=read)


def delta_rows(table: DeltaTable) -> pa.Table:
    """Read the rows with the library's own engine: with pyarrow's a process may abort at its end."""
    return pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()).cast(schema_of(table))


def iceberg(path: Path | str, mode: Mode = "append", **chosen: Any) -> Lake:
    """Make Iceberg tables with a catalog in SQLite."""
    folder = Path(chosen.pop("catalog_folder", path))
    folder.mkdir(parents=True, exist_ok=True)
    return iceberg_in({"type": "sql", "uri": f"sqlite:///{folder / 'catalog.db'}"}, path, mode, **chosen)


def iceberg_in(catalog: dict[str, Any], path: Path | str, mode: Mode = "append", **chosen: Any) -> Lake:
    """Make Iceberg tables in this catalog."""
    settings = IcebergOutput(path=str(path), mode=mode, catalog=catalog, **chosen)

    def read(name: str) -> pa.Table | None:
        schema, point, table = name.partition(".")
        try:
            found = open_catalog(**settings.properties).load_table(
                (schema, table) if point else (settings.namespace, schema)
            )
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        return found.scan().to_arrow().cast(plain_schema(found.schema().as_arrow()))

    return Lake(settings=settings, tables=lambda: IcebergTables(settings), read=read)


LAKES: dict[str, Callable[..., Lake]] = {"delta": delta, "iceberg": iceberg}


def put(sink: LakeSink, plan: str, *changes: Any, **chosen: Any) -> Sequence[Any]:
    """Commits changes as a plan."""
    made: list[RowsDocument] = documents(*changes, after=sink.last(), **chosen)
    sink.prepare(plan, made)
    return sink.commit(plan, made)


def random_step(chance: random.Random, rows: dict[int, str | None], numbers: Any) -> list[Change]:
    """Change the rows at random; return the change."""
    number, choice, name = next(numbers), chance.random(), chance.choice([None, "Ada", "Zoë", ""])
    free = [key for key in range(12) if key not in rows]
    if choice < 0.02:
        rows.clear()
        return [told(number, Op.TRUNCATE, 0)]
    if choice < 0.4 and free:
        key = chance.choice(free)
        rows[key] = name
        return [told(number, Op.ADD, key, idu=str(key), fname=name)]
    if not rows:
        return []
    key = chance.choice(sorted(rows))
    former = rows.pop(key)
    if choice < 0.55:
        return [told(number, Op.DELETE, key, idu=(str(key), None), fname=(former, None))]
    if choice < 0.75 and free:
        other = chance.choice(free)
        rows[other] = name
        return [told(number, Op.MODIFY, other, idu=(str(key), str(other)), fname=(former, name))]
    rows[key] = name
    return [told(number, Op.MODIFY, key, fname=(former, name))]


@contextmanager
def once(owner: Any, name: str, act: Callable[[], object], *, before: bool = True) -> Iterator[None]:
    """Acts before a function is called for the first time, or after it."""
    function, done = getattr(owner, name), list[bool]()

    def acting(*positional: Any, **named: Any) -> Any:
        if done:
            return function(*positional, **named)
        done.append(True)
        if before:
            act()
            return function(*positional, **named)
        found = function(*positional, **named)
        act()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, acting)
        yield


class DuckDB:
    """DuckDB with its own extensions for Delta Lake and Iceberg, as `./dev fetch lake-readers` brings them."""

    def __init__(self, server: StoreServer | None = None) -> None:
        packages = found("lake-readers", "duckdb")
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(packages))
            duckdb: Any = import_module("duckdb")
        self._database = duckdb.connect(":memory:")
        self._database.execute("SET TimeZone = 'UTC'; SET autoinstall_known_extensions = false")
        for extension in ("avro", "delta", "iceberg"):
            [file] = packages.glob(f"duckdb_extension_{extension}/**/*.duckdb_extension")
            self._database.execute(f"LOAD '{file}'")
        if server is not None:
            [file] = found("lake-readers", "duckdb-in-stores").glob("**/*.duckdb_extension")
            self._database.execute(f"LOAD '{file}'")
            login = {"KEY_ID": ENVIRONMENT["AWS_ACCESS_KEY_ID"], "SECRET": SECRET, "REGION": "us-east-1"}
            place = {"ENDPOINT": server.url.removeprefix("http://"), "URL_STYLE": "path"}
            said = "".join(f", {name} '{value}'" for name, value in {**login, **place}.items())
            self._database.execute(f"CREATE SECRET (TYPE s3, USE_SSL false{said})")

    def read(self, lake: Lake, name: str) -> pa.Table:
        """Read a table's rows, of the last version in its log or catalog."""
        if isinstance(lake.settings, IcebergOutput):
            table = open_catalog(**lake.settings.properties).load_table((lake.settings.namespace, name))
            scan = f"iceberg_scan('{table.metadata_location}')"
        else:
            scan = f"delta_scan('{lake.settings.path}/{name}')"
        return self._database.execute(f"SELECT * FROM {scan}").to_arrow_table()
