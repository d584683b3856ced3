"""Publishing without triggers: rows are found again by the keys that they were read with, whatever type those have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.compare.tables import TableSide
from eventlog.core.model import Image
from eventlog.sources.compare.reader import compare_reader
from eventlog.sources.compare.settings import CompareSettings
from eventlog.sources.stream.source import FileMarks
from eventlog.sql.dialect import dialect_of
from eventlog.sql.reflect import reflect
from tests.support.captured import Capturing
from tests.support.logged import run

COMMON = {
    "DATE": ("'2024-01-02'", "'0001-01-01'", "'9999-12-31'"),
    "DECIMAL(12,3)": ("1.500", "0", "-0.010", "100"),
    "DOUBLE PRECISION": ("1.5", "1e16", "1e-7", "0.00001", "123456789012345680", "0"),
    "CHAR(5)": ("'ab'", "'abcde'"),
    "VARCHAR(20)": ("'ab '", "''", "'Ünï'", "'a|b'", "'a,\"b'"),
    "BIGINT": ("9223372036854775807", "-9223372036854775808", "0"),
}
OWN = {
    "postgresql": {
        "date": ("'infinity'",),
        "timestamp": ("'2024-01-02 03:04:05'", "'2024-01-02 03:04:05.120000'", "'2024-01-02 00:00:00'"),
        "timestamp(0)": ("'2024-01-02 03:04:05'",),
        "timestamptz": ("'2024-01-02 03:04:05+02'", "'2024-01-02 03:04:05.5+05:30'"),
        "time": ("'03:04:05'", "'03:04:05.10'"),
        "numeric": ("1.50", "1e20", "1e-9", "'NaN'"),
        "double precision": ("'-0'",),
        "real": ("1.1", "1e10", "1e-7", "3.4028235e38", "1e-45", "'NaN'"),
        "boolean": ("true", "false"),
        "uuid": ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",),
        "bytea": ("'\\x00ff'", "''"),
        "interval": ("'1 day'",),
        "inet": ("'10.0.0.1'",),
    },
    "mysql": {
        "datetime(6)": ("'2024-01-02 03:04:05'", "'2024-01-02 03:04:05.120000'"),
        "datetime": ("'2024-01-02 03:04:05'",),
        "timestamp": ("'2024-01-02 03:04:05'",),
        "time(2)": ("'03:04:05.10'", "'123:04:05'", "'-01:00:00'", "'-838:59:59'"),
        "float": ("1.1", "1e10"),
        "tinyint(1)": ("1", "0"),
        "varbinary(20)": ("x'00ff'",),
        "binary(4)": ("x'00ff'",),
        "bigint unsigned": ("18446744073709551615", "0", "9223372036854775808"),
        "year": ("2024",),
        "bit(3)": ("b'101'",),
        "enum('a','b')": ("'a'",),
    },
    "sqlite": {},
}


def opened(engine: Engine, folder: Path, said: list[str] | None = None, **settings: Any) -> Capturing:
    chosen = CompareSettings(state=str(folder / "state.db"), marks=str(folder / "marks.json"), **settings)
    reader = compare_reader(
        engine,
        reflect(engine, ["t"]),
        chosen,
        FileMarks(Path(chosen.marks)),
        report=([] if said is None else said).append,
    )
    return Capturing(reader, folder / "log.db", 100)


def taken(source: Capturing) -> list[str]:
    images = source.take()
    assert all(isinstance(image, Image) for image in images)
    return [str(image.op) for image in images]


@pytest.mark.in_turn
@pytest.mark.parametrize("start", ["everything", "future-only"])
def test_rows_are_found_by_their_keys_of_any_type(engine: Engine, tmp_path: Path, start: str) -> None:
    for number, (type_, values) in enumerate([*COMMON.items(), *OWN[dialect_of(engine).name].items()]):
        folder = tmp_path / str(number)
        folder.mkdir()
        run(engine, f"CREATE TABLE t (k {type_} PRIMARY KEY, v VARCHAR(10))")
        run(engine, *[f"INSERT INTO t VALUES ({value}, 'a')" for value in values])
        source = opened(engine, folder, start=start)
        told = [taken(source), taken(source)]
        run(engine, "UPDATE t SET v = 'b'")
        told.append(taken(source))
        run(engine, "DELETE FROM t")
        told.append(taken(source))
        source.close()
        assert told == [
            ["add"] * len(values) * (start == "everything"),
            [],
            ["modify"] * len(values),
            ["delete"] * len(values),
        ], type_
        run(engine, "DROP TABLE t")


def test_rows_that_are_not_found_by_their_keys_are_told_of_once(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(sqlite, "CREATE TABLE t (k INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    said: list[str] = []
    source = opened(sqlite, tmp_path, said)
    with monkeypatch.context() as patched:
        patched.setattr(TableSide, "_look_up", lambda *_: {})
        for _ in range(3):
            assert taken(source) == []
    [sentence] = said
    assert sentence.startswith("t: rows such as ")
    assert taken(source) == ["add", "add"]
    assert (taken(source), len(said)) == ([], 1)
    source.close()
