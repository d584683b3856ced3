"""`eventlog verify` of tables of a lake: mirrors and change tables, planted differences, and repair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.table import Table
from sqlalchemy import Engine

from eventlog.sinks.lake.plugin import IcebergOutput
from tests.integration.test_verify import Circle
from tests.support.lakes import LAKES, Lake, open_catalog

MORE = """
[[output]]
name = "{name}"
sink = "{kind}"
path = "{path}"
mode = "{name}"
{catalog}
"""


@pytest.fixture(params=sorted(LAKES))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class LakeCircle(Circle):
    """The same with a lake that has mirrors and one that has change tables."""

    def __init__(self, source: Engine, kind: str, folder: Path, capsys: Any, key: str) -> None:
        self.lakes: dict[str, Lake] = {
            "mirror": LAKES[kind](folder / "mirror", "mirror"),
            "append": LAKES[kind](folder / "append", "append"),
        }
        more = ""
        for name, lake in self.lakes.items():
            catalog = ""
            if isinstance(lake.settings, IcebergOutput):
                catalog = f'catalog = {{type = "sql", uri = "{lake.settings.catalog["uri"]}"}}'
            more += MORE.format(name=name, kind=kind, path=lake.settings.path, catalog=catalog)
        super().__init__(source, source, folder, capsys, key=key, more=more)

    def put(self, rows: pa.Table, *, over: bool) -> None:
        """Writes rows into the mirror as somebody else would: over all that there is, or beside it."""
        settings = self.lakes["mirror"].settings
        if not isinstance(settings, IcebergOutput):
            place = DeltaTable(f"{settings.path}/usr")
            write_deltalake(place, rows, mode="overwrite" if over else "append")
            return
        table: Table = open_catalog(**settings.properties).load_table((settings.namespace, "usr"))
        table.overwrite(rows) if over else table.append(rows)


@pytest.mark.in_turn
@pytest.mark.parametrize("key", ["number", "both"])
def test_what_is_planted_in_a_mirror_is_found_and_repaired(
    sqlite: Engine, kind: str, tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    circle = LakeCircle(sqlite, kind, tmp_path, capsys, key)
    circle.write(300)
    circle.publish()
    assert _told(circle, "mirror") == (0, None, 0, 0, 0, 0)
    rows = circle.lakes["mirror"].read("usr")
    assert rows is not None
    assert rows.num_rows > 20
    number = [field.name for field in rows.schema].index("size")
    sizes = rows.column(number).to_pylist()
    sizes[10:15] = [(size or 0) + 1 for size in sizes[10:15]]
    changed = rows.set_column(number, rows.schema.field(number), pa.array(sizes, rows.schema.field(number).type))
    circle.put(changed.slice(3), over=True)
    twice = rows.slice(30, 2)
    circle.put(twice, over=False)
    extra = rows.slice(0, 1).set_column(
        rows.schema.get_field_index("id"),
        rows.schema.field("id"),
        pa.array([-7 if key == "number" else "nobody"], rows.schema.field("id").type),
    )
    circle.put(extra, over=False)
    assert _told(circle, "mirror", "--repair") == (1, None, 3, 1, 5, 2)
    circle.publish()
    assert _told(circle, "mirror", "--repair") == (1, None, 2, 0, 0, 0)  # what stood there twice has gone
    circle.publish()
    assert _told(circle, "mirror") == (0, None, 0, 0, 0, 0)


def test_a_change_table_is_compared_by_what_its_rows_add_up_to(
    sqlite: Engine, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever order its files have, and whatever columns came and went between them."""
    circle = LakeCircle(sqlite, kind, tmp_path, capsys, "both")
    for _ in range(3):
        circle.write(80)
        circle.publish()
    assert _told(circle, "append") == (0, None, 0, 0, 0, 0)
    with sqlite.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER event_log_usr_update")
        connection.exec_driver_sql("UPDATE usr SET pay = 77.5 WHERE part = 1")
        many = connection.exec_driver_sql("SELECT count(*) FROM usr WHERE part = 1").scalar_one()
    assert _told(circle, "append", "--repair") == (1, None, 0, 0, many, 0)
    circle.publish()
    assert _told(circle, "append") == (0, None, 0, 0, 0, 0)


def _told(circle: Circle, output: str, *arguments: str) -> tuple[Any, ...]:
    code, told = circle.verify("--output", output, *arguments)
    assert not told["waiting"], told
    return (code, told["problem"], told["missing"], told["extra"], told["value"], told["double"])
