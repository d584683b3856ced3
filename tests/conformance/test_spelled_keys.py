"""Keys that a database takes for one row are one object, whoever spells them: rows of the log that somebody else writes."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.convert.local import convert
from eventlog.convert.settings import Conversion, DatabaseRows, LogInput
from eventlog.core.tablekey import TableKey
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.dialect import dialect_of
from eventlog.sql.reflect import reflect
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.converting import bare, elements_of
from tests.support.logged import run

KEYS = [
    ("INTEGER", "1", ["k=1", "K=01", 'k="+1"', "k= 1"], "k=1"),
    ("NUMERIC(10,2)", "1.5", ["k=1.5", "k=1.50", "K=01.500"], "k=1.50"),
    ("CHAR(5)", "'ab'", ["k=ab", 'k="ab "', 'K="ab   "'], "k=ab"),
    ("DATE", "'2024-01-05'", ["k=2024-01-05", 'K="2024-01-05 00:00:00"'], "k=2024-01-05"),
]


@pytest.mark.parametrize("kind, literal, keys, canonical", KEYS)
def test_one_row_is_one_object(
    engine: Engine, tmp_path: Path, kind: str, literal: str, keys: list[str], canonical: str
) -> None:
    if not dialect_of(engine).typed_columns and ("CHAR" in kind or kind == "DATE"):
        pytest.skip("there these are different texts, and rows")
    install(engine)
    run(engine, f"CREATE TABLE t (k {kind} NOT NULL PRIMARY KEY, v VARCHAR(9))")
    track(engine, ["t"])
    run(engine, f"INSERT INTO t VALUES ({literal}, 'x')")
    with engine.begin() as connection:
        added = text("INSERT INTO event_log (event_type, table_name, table_key) VALUES (6, 't', :key)")
        for key in keys:
            connection.execute(added, {"key": key})
    source = SourceConfig(url=engine.url.render_as_string(hide_password=False))
    output = FilesOutput(path=str(tmp_path))
    with Publisher(
        Config(source=source, publisher=PublisherConfig(allow_loopback=True), output=(output,))
    ) as publisher:
        publisher.run_once()
    [published] = [file.read_text() for file in tmp_path.glob("*.xml")]
    assert published.count("<modify ") == 1
    assert f"<association>{canonical},table=t" in published
    with engine.connect() as connection:
        reasons = connection.execute(text("SELECT reason FROM event_log_outcome ORDER BY record_id")).scalars().all()
        assert {*connection.execute(text("SELECT status FROM event_log")).scalars()} == {"S"}
    assert reasons.count("superseded") == len(keys)


INSENSITIVE = "CREATE COLLATION alike (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
TEXTS = {
    "sqlite": [
        ("TEXT COLLATE NOCASE", ["Ab", "ab", "AB"], ["Ab "]),
        ("TEXT COLLATE RTRIM", ["Ab", "Ab ", "Ab   "], ["ab"]),
    ],
    "postgresql": [
        ("citext", ["Ab", "ab", "AB"], ["Ab "]),
        ("text COLLATE alike", ["Ab", "ab", "AB"], ["Ab "]),
        ("varchar(9)", ["Ab"], ["ab", "Ab "]),
    ],
    "mariadb": [
        ("VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", ["Ab", "ab", "AB ", "ab  "], ["b"]),
        ("VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", ["Ab", "Ab "], ["ab"]),
        ("CHAR(9) CHARACTER SET latin1 COLLATE latin1_swedish_ci", ["Ab", "ab ", "AB"], ["b"]),
        ("VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin", ["Ab"], ["ab", "Ab "]),
    ],
}


def text_cases(engine: Engine) -> list[tuple[str, list[str], list[str]]]:
    """Return the collations of a database, each with texts of one key, the one in the table first, and with other
    texts.
    """
    name = engine.dialect.name
    if name == "postgresql":
        run(engine, "CREATE EXTENSION IF NOT EXISTS citext", INSENSITIVE)
    return TEXTS.get("mariadb" if name == "mysql" else name, [])


ADDED = text(
    "INSERT INTO event_log (event_type, table_name, table_key, column_name, new_value)"
    " VALUES (:kind, 't', :key, :column, CASE WHEN :kind = 2 THEN 'y' END)"
)


def publish_rows(engine: Engine, folder: Path, rows: list[tuple[int, str, str | None]]) -> str:
    """Enter rows of the log as an application would, publish them, and return the documents."""
    source = SourceConfig(url=engine.url.render_as_string(hide_password=False))
    config = Config(
        source=source,
        publisher=PublisherConfig(allow_loopback=True),
        output=(FilesOutput(path=str(folder)),),
    )
    before = {file.name for file in folder.glob("*.xml")}
    with engine.begin() as connection:
        for kind, key, column in rows:
            connection.execute(ADDED, {"kind": kind, "key": key, "column": column})
    with Publisher(config) as publisher:
        publisher.run_once()
    files = sorted(file for file in folder.glob("*.xml") if file.name not in before)
    return "".join(bare(file.read_text()) for file in files)


@pytest.mark.in_turn
def test_texts_that_a_collation_takes_for_one_are_one_object_called_as_its_row_is(
    engine: Engine, tmp_path: Path
) -> None:
    install(engine)
    for kind, alike, others in text_cases(engine):
        run(
            engine,
            "DROP TABLE IF EXISTS t",
            f"CREATE TABLE t (k {kind} NOT NULL PRIMARY KEY, v VARCHAR(9), w VARCHAR(9))",
        )
        track(engine, ["t"])
        run(engine, f"INSERT INTO t VALUES ('{alike[0]}', 'x', 'x')")
        publish_rows(engine, tmp_path, [])
        keys = [f'K="{written}"' for written in reversed(alike)]
        # All at once: one change.
        published = publish_rows(engine, tmp_path, [(6, key, None) for key in keys])
        assert published.count("<modify ") == 1, kind
        # One after the other, of fields: each is called as the row is, and nothing else.
        for key in keys:
            published += publish_rows(engine, tmp_path, [(2, key, "v")])
        assert published.count("<modify ") == published.count("<association>k=Ab,table=t") == len(keys) + 1, kind
        other = publish_rows(engine, tmp_path, [(2, f'k="{written}"', "v") for written in others])
        assert other.count("<modify ") == len(others)
        assert "k=Ab," not in other, kind
        run(engine, "DELETE FROM t")
        assert "<delete " in publish_rows(engine, tmp_path, [])


def test_a_key_that_gets_another_spelling_goes_and_comes(engine: Engine, tmp_path: Path) -> None:
    install(engine)
    for kind, alike, _ in text_cases(engine):
        run(
            engine,
            "DROP TABLE IF EXISTS t",
            f"CREATE TABLE t (k {kind} NOT NULL PRIMARY KEY, v VARCHAR(9), w VARCHAR(9))",
        )
        track(engine, ["t"])
        run(engine, f"INSERT INTO t VALUES ('{alike[0]}', 'x', 'x')", f"UPDATE t SET k = '{alike[-1]}'")
        published = html.unescape(publish_rows(engine, tmp_path, []))
        if len(alike) == 1:
            continue
        first, last = published.rindex("<delete "), published.rindex("<modify ")
        assert first < last, kind
        assert published[first:].index("k=Ab,") < last - first, kind
        assert f"k={TableKey.of({'k': alike[-1]}).text.partition('=')[2]},table=t" in published[last:], kind


def test_a_conversion_calls_objects_as_the_publisher_does(engine: Engine, tmp_path: Path) -> None:
    install(engine)
    [(kind, alike, _), *_] = text_cases(engine)
    run(engine, f"CREATE TABLE t (k {kind} NOT NULL PRIMARY KEY, v VARCHAR(9), w VARCHAR(9))")
    track(engine, ["t"])
    run(engine, f"INSERT INTO t VALUES ('{alike[0]}', 'x', 'x')", "DELETE FROM event_log")
    url = engine.url.render_as_string(hide_password=False)
    rows = [(2, f'k="{key}"', column) for key, column in zip(reversed(alike), ("v", "w", "v", "w"), strict=False)]
    with engine.begin() as connection:
        for _, key, column in rows:
            connection.execute(ADDED, {"kind": 2, "key": key, "column": column})
    wanted = Conversion(
        input=LogInput(url=url, statuses="N"),
        destination=tmp_path / "out",
        catalog=reflect(engine, ["t"]),
        read_back=DatabaseRows(url=url),
    )
    convert(wanted, jobs=1)
    converted = elements_of(tmp_path / "out")
    assert converted == publish_rows(engine, tmp_path / "daemon", [])
    assert converted.count("<modify ") == converted.count("<association>k=Ab,table=t") == (len(alike) + 1) // 2


REFERRED = {
    "sqlite": ("TEXT COLLATE NOCASE", "TEXT", "ab"),
    "postgresql": ("citext", "citext", "ab"),
    "mariadb": (
        "VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "ab ",
    ),
}


@pytest.mark.parametrize("style", [Style.IMAGE, Style.FIELD, Style.ROW_BACK])
def test_a_reference_is_spelled_as_the_row_that_it_names(engine: Engine, tmp_path: Path, style: Style) -> None:
    install(engine)
    text_cases(engine)
    key, reference, spelled = REFERRED["mariadb" if engine.dialect.name == "mysql" else engine.dialect.name]
    run(
        engine,
        f"CREATE TABLE p (k {key} NOT NULL PRIMARY KEY, v VARCHAR(9))",
        f"CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, r {reference}, w VARCHAR(9), FOREIGN KEY (r) REFERENCES p (k))",
    )
    track(engine, ["p", "t"], TriggerOptions(style=style))
    run(
        engine,
        "INSERT INTO p VALUES ('Ab', 'x')",
        f"INSERT INTO t VALUES (1, '{spelled}', 'x')",
        "INSERT INTO t VALUES (2, NULL, 'x')",
    )
    url = engine.url.render_as_string(hide_password=False)
    wanted = Conversion(
        input=LogInput(url=url, statuses="N"),
        destination=tmp_path / "out",
        catalog=reflect(engine, ["p", "t"]),
        read_back=DatabaseRows(url=url),
    )
    convert(wanted, jobs=1)
    published = html.unescape(publish_rows(engine, tmp_path, []))
    assert published.count('<value type="dn" association-ref="k=Ab,table=p') == 1
    assert f">{spelled}</value>" in published, "the value stays as the row has it"
    if style is not Style.IMAGE:  # of which a log's own definitions say how they are read
        assert html.unescape(elements_of(tmp_path / "out")) == published
    # The row that goes is there no more when a change is read that speaks of it.
    run(engine, "UPDATE t SET r = NULL", "DELETE FROM p")
    after = html.unescape(publish_rows(engine, tmp_path, []))
    assert "<association>k=Ab,table=p" in after


def test_blanks_at_the_end_of_a_char_name_no_other_object(engine: Engine, tmp_path: Path) -> None:
    install(engine)
    run(
        engine,
        "CREATE TABLE p (k CHAR(5) NOT NULL PRIMARY KEY, v VARCHAR(9))",
        "CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, r CHAR(5), FOREIGN KEY (r) REFERENCES p (k))",
    )
    track(engine, ["p", "t"])
    run(engine, "INSERT INTO p VALUES ('ab', 'x')", "INSERT INTO t VALUES (1, 'ab')")
    published = html.unescape(publish_rows(engine, tmp_path, []))
    assert published.count("k=ab,table=p") == 2


def test_a_reference_to_a_column_that_is_no_key_names_no_object(engine: Engine, tmp_path: Path) -> None:
    install(engine)
    run(
        engine,
        "CREATE TABLE p (k INTEGER NOT NULL PRIMARY KEY, login VARCHAR(9) NOT NULL UNIQUE)",
        "CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, r VARCHAR(9), FOREIGN KEY (r) REFERENCES p (login))",
    )
    track(engine, ["p", "t"])
    run(engine, "INSERT INTO p VALUES (1, 'jack')", "INSERT INTO t VALUES (1, 'jack')")
    published = publish_rows(engine, tmp_path, [])
    assert "association-ref" not in published
    assert published.count(">jack</value>") == 2


def test_a_reference_names_its_table_in_another_schema(postgresql: Engine, tmp_path: Path) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE SCHEMA other",
        "CREATE TABLE p (k INTEGER NOT NULL PRIMARY KEY)",
        "CREATE TABLE other.p (k INTEGER NOT NULL PRIMARY KEY)",
        "CREATE TABLE other.q (k INTEGER NOT NULL PRIMARY KEY)",
        "CREATE TABLE q (k INTEGER NOT NULL PRIMARY KEY)",
        "CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, r INTEGER REFERENCES other.p, s INTEGER REFERENCES q)",
    )
    track(postgresql, ["p", "other.p", "other.q", "t"])
    run(
        postgresql,
        "INSERT INTO other.p VALUES (1)",
        "INSERT INTO q VALUES (2)",
        "INSERT INTO t VALUES (1, 1, 2)",
    )
    published = publish_rows(postgresql, tmp_path, [])
    assert published.count("association-ref") == 2
    assert 'association-ref="k=1,table=p,schema=other"' in published
    assert 'association-ref="k=2,table=q,schema=public"' in published
