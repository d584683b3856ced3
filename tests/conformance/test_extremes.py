"""What a mirror in the same kind of database holds: everything that the source holds, in values and in keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from sqlalchemy import Connection, Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.database.mirror import Mirrors
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.servers import mysqls

# A type, what the judge reads of it, and its values.
POSTGRESQL: Final = [
    ("DATE", "{}::text", ["'infinity'", "'-infinity'", "'0044-03-15 BC'", "'99999-01-01'", "'2024-02-29'"]),
    ("TIMESTAMP", "{}::text", ["'infinity'", "'0044-03-15 10:00 BC'", "'99999-01-01 00:00:01'", "'2024-02-29 12:00'"]),
    ("TIMESTAMPTZ", "{}::text", ["'-infinity'", "'0044-03-15 10:00+00 BC'", "'99999-01-01 00:00:01+00'"]),
    ("TIME", "{}::text", ["'24:00'", "'00:00'", "'23:59:59.999999'"]),
    ("NUMERIC(10,2)", "{}::text", ["'NaN'", "1.50"]),
    ("NUMERIC(38,0)", "{}::text", ["'NaN'", "99999999999999999999999999999999999999"]),
    ("NUMERIC", "{}::text", ["'NaN'", "'Infinity'", "1e-20"]),
    ("DOUBLE PRECISION", "{}::text", ["'NaN'", "'-Infinity'", "1e300"]),
    ("REAL", "{}::text", ["'NaN'", "'Infinity'", "16777216"]),
]
MYSQL: Final = [
    ("DATE", "CAST({} AS CHAR)", ["'0000-00-00'", "'2024-00-00'", "'2024-02-29'"]),
    ("DATETIME(6)", "CAST({} AS CHAR)", ["'0000-00-00 00:00:00'", "'2024-02-00 10:00:00.25'", "'9999-12-31 23:59:59'"]),
    ("TIME(6)", "CAST({} AS CHAR)", ["'838:59:59'", "'-838:59:59'", "'24:00:00'", "'-00:00:01.5'", "'23:59:59'"]),
    ("TINYINT(1)", "{}", ["5", "-128", "1", "0"]),
    ("FLOAT", "{} + 0e0", ["16777216", "-16777215", "0.5", "3.4028234663852886e38"]),
]
SHAPES: Final = ["ST_GeomFromText('POINT(1 2)', 4326)", "ST_GeomFromText('POINT(1 2)')"]


@pytest.fixture(params=["postgresql", *mysqls()])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Return an engine on each database with values beyond Python's."""
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def source(engine: Engine) -> Iterator[Connection]:
    """Open a session with zero dates allowed."""
    arguments = {}
    if engine.dialect.name != "postgresql":
        arguments = {"init_command": "SET SESSION sql_mode = 'STRICT_TRANS_TABLES', time_zone = '+00:00'"}
    lenient = create_engine(engine.url, connect_args=arguments)
    with lenient.connect() as connection:
        install(engine)
        yield connection
    lenient.dispose()


@pytest.mark.parametrize("style", [Style.IMAGE, Style.FIELD, Style.ROW_BACK])
def test_a_mirror_of_the_same_kind_holds_it_all(engine: Engine, source: Connection, style: Style) -> None:
    kinds = POSTGRESQL if engine.dialect.name == "postgresql" else MYSQL
    for place, (kind, _, values) in enumerate(kinds):
        source.exec_driver_sql(
            f"CREATE TABLE t{place} (k {kind} NOT NULL, i INTEGER NOT NULL, v {kind}, PRIMARY KEY (k, i))"
        )
        source.commit()
        track(engine, [f"t{place}"], TriggerOptions(style=style))
        _fill(source, f"t{place}", values)
    with _published(engine) as mirrored:
        for place, (_, read, _) in enumerate(kinds):
            query = f"SELECT {read.format('k')}, i, {read.format('v')} FROM {{}} ORDER BY 1, 2"
            expected = source.exec_driver_sql(query.format(f"t{place}")).all()
            assert expected, "there are rows to tell"
            assert mirrored.exec_driver_sql(query.format(f"t{place}__mirror")).all() == expected
    # A row that is gone before it is read back is the one thing to say.
    told = source.exec_driver_sql("SELECT DISTINCT reason FROM event_log_outcome WHERE status <> 'S'").scalars().all()
    assert set(told) <= {"vanished"}


def _fill(source: Connection, table: str, values: list[str]) -> None:
    """Insert a row for each value, as a key and as a value; then update some, and delete some."""
    for number, value in enumerate(values):
        source.exec_driver_sql(
            f"INSERT INTO {table} VALUES ({value}, 1, {value}), ({value}, 2, NULL), ({value}, 3, NULL)"
        )
        source.exec_driver_sql(f"UPDATE {table} SET v = {values[number - 1]} WHERE i = 2 AND v IS NULL")
    source.commit()
    source.exec_driver_sql(f"DELETE FROM {table} WHERE i = 3")
    source.commit()


@contextmanager
def _published(engine: Engine) -> Iterator[Connection]:
    """Publish all waiting rows into change tables beside the source's tables, and apply them."""
    url = engine.url.render_as_string(hide_password=False)
    config = Config(
        source=SourceConfig(url=url),
        publisher=PublisherConfig(allow_loopback=True),
        output=(DatabaseOutput(url=url),),
    )
    with Publisher(config) as publisher:
        for _ in range(3):
            publisher.run_once()
    mirrors = create_engine(url)
    Mirrors(mirrors).apply()
    mirrors.dispose()
    with engine.connect() as mirrored:
        yield mirrored


@pytest.mark.parametrize("style", [Style.IMAGE, Style.ROW_BACK])
def test_a_geometry_keeps_its_reference_system(engine: Engine, source: Connection, style: Style) -> None:
    if engine.dialect.name == "postgresql":
        pytest.skip("there they are types of an extension")
    source.exec_driver_sql("CREATE TABLE t (i INTEGER PRIMARY KEY, v POINT)")
    source.commit()
    track(engine, ["t"], TriggerOptions(style=style))
    for number, shape in enumerate(SHAPES):
        source.exec_driver_sql(f"INSERT INTO t VALUES ({number}, {shape})")
    source.commit()
    with _published(engine) as mirrored:
        told = mirrored.execute(text("SELECT v FROM t__mirror ORDER BY i")).scalars().all()
    assert told == ["SRID=4326;POINT(1 2)", "POINT(1 2)"]
