"""`eventlog apply`: a mirror becomes what the changes say, from any watermark, in pieces of any size."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.cli.main import exit_code
from eventlog.core.errors import DataError, UsageError
from eventlog.core.model import Op
from eventlog.sinks.database.mirror import Mirrors
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from tests.support.changerows import documents, told
from tests.support.sinks import opened

CHANGES = [
    told(1, Op.ADD, 1, fname="Jack", pay="1.50"),
    told(2, Op.ADD, 2, fname="Ida"),
    told(3, Op.MODIFY, 1, fname=("Jack", "John")),
    told(4, Op.MODIFY, 7, fname=("x", "y")),
    told(5, Op.MODIFY, 1, pay=("1.50", None)),
    told(6, Op.DELETE, 2),
    told(7, Op.MODIFY, 3, idu=("7", "3")),
    told(8, Op.ADD, 1, "grp", name="staff"),
]
EXPECTED = [(1, "John", None), (3, "y", None)]


def stored(engine: Engine, *changes: Any, **chosen: Any) -> None:
    sink = opened(DatabaseSink(DatabaseSettings(url=""), engine))
    sink.commit("", documents(*changes, after=sink.last(), **chosen))


def mirrored(engine: Engine) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text("SELECT idu, fname, pay FROM usr__mirror ORDER BY idu"))]


@pytest.mark.parametrize("piece", [2, 3, 10_000])
@pytest.mark.parametrize("mask", ["binary", "hex"])
def test_the_mirror_is_what_the_changes_say(engine: Engine, piece: int, mask: str) -> None:
    stored(engine, *CHANGES, mask=mask)
    done = {one.mirror: one.rows for one in Mirrors(engine, piece=piece).apply()}
    assert mirrored(engine) == EXPECTED
    assert done == {"grp__mirror": 1, "usr__mirror": 11}


def test_each_time_only_what_is_new_is_applied(engine: Engine) -> None:
    for number, change in enumerate(CHANGES[:7], 1):
        stored(engine, change)
        [done] = Mirrors(engine).apply()
        assert done.rows in (1, 2)
        assert done.change_seq.endswith(f"{number:019d}")
    assert [one.rows for one in Mirrors(engine).apply()] == [0]
    assert mirrored(engine) == EXPECTED


def test_deletes_and_purged_change_tables_do_not_move_the_watermark_back(engine: Engine) -> None:
    stored(engine, *CHANGES[:2], told(3, Op.DELETE, 1), told(4, Op.DELETE, 2))
    Mirrors(engine).apply()
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM usr__ct"))
    assert [one.rows for one in Mirrors(engine).apply()] == [0]
    stored(engine, told(5, Op.ADD, 5, fname="Eve"))
    Mirrors(engine).apply()
    assert mirrored(engine) == [(5, "Eve", None)]


def test_a_table_with_rows_of_somebody_else_is_only_taken_when_asked(engine: Engine) -> None:
    stored(engine, CHANGES[2])
    with engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE usr__mirror (idu INTEGER PRIMARY KEY, fname VARCHAR(10), pay NUMERIC(10,2))")
        )
        connection.execute(text("INSERT INTO usr__mirror (idu, fname) VALUES (1, 'Jack'), (2, 'Ida')"))
    with pytest.raises(DataError, match="holds rows, and is no mirror yet"):
        Mirrors(engine).apply()
    Mirrors(engine, adopt=True).apply()
    assert [row[:2] for row in mirrored(engine)] == [(1, "John"), (2, "Ida")]
    assert [one.rows for one in Mirrors(engine).apply()] == [0]


def test_without_masks_null_means_untouched(engine: Engine) -> None:
    stored(engine, *CHANGES[:3], headers=("change_seq", "change_oper"))
    Mirrors(engine).apply()
    assert [row[:2] for row in mirrored(engine)] == [(1, "John"), (2, "Ida")]


def test_what_cannot_be_applied_is_said(engine: Engine) -> None:
    with pytest.raises(DataError, match="no change tables here"):
        Mirrors(engine).apply()
    stored(engine, CHANGES[0], headers=("change_oper",))
    with pytest.raises(DataError, match="has no change_seq"):
        Mirrors(engine).apply()
    with pytest.raises(UsageError, match="no change table of nosuch"):
        Mirrors(engine).apply(["nosuch"])
    with pytest.raises(UsageError, match="must never be the source tables"):
        Mirrors(engine, suffix="")


def test_the_command_says_what_it_did(sqlite: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    stored(sqlite, *CHANGES)
    url = sqlite.url.render_as_string(hide_password=False)
    assert exit_code(["apply", "usr", "--database", url]) == 0
    assert "usr__ct -> usr__mirror: 11 rows" in capsys.readouterr().out
    assert exit_code(["apply", "--database", url, "--json"]) == 0
    assert [one["rows"] for one in json.loads(capsys.readouterr().out)] == [1, 0]
    assert exit_code(["apply", "--database", url, "--suffix", ""]) == 64
