"""A log whose rows wait while their table gets another column, other names and another type; and what is made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.cli.main import exit_code
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.sinks.outputs import FilesOutput
from eventlog.tracked.options import Style, TrackRequest, TriggerOptions
from tests.integration.publishing import publish_all
from tests.support.converting import bare
from tests.support.logged import run

FORMATS = ("xds", "messages", "change-tables")


def altered_log(engine: Engine, style: Style) -> None:
    """Fill a log with waiting rows of two tables, one altered four times and renamed at last."""
    follows = engine.dialect.name == "postgresql"
    install(engine)
    run(engine, "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, a VARCHAR(40), b VARCHAR(40), n INTEGER)")
    run(engine, "CREATE TABLE city (idc INTEGER NOT NULL PRIMARY KEY, name VARCHAR(40))")
    track(engine, ["usr", "city"], TriggerOptions(style=style, follow_ddl=follows))
    run(engine, "INSERT INTO usr VALUES (1, 'x', 'y', 5), (2, 'x', 'y', 6), (3, 'x', NULL, 7)")
    run(engine, "INSERT INTO city VALUES (1, 'Ulm')", "UPDATE usr SET b = 'z', n = 8 WHERE idu = 1")

    def alter(statement: str, table: str = "usr", **asked: Any) -> None:
        run(engine, f"ALTER TABLE {table} {statement}")
        if not follows:
            track(engine, [asked.pop("now", table)], TrackRequest(**asked))

    alter("RENAME COLUMN a TO aa")
    run(engine, "UPDATE usr SET aa = 'w' WHERE idu = 2", "UPDATE city SET name = 'Bonn'")
    if not follows:
        track(engine, ["usr"], TrackRequest(exclude=("b",)))
    alter("DROP COLUMN b", exclude=())
    run(engine, "DELETE FROM usr WHERE idu = 3", "INSERT INTO usr VALUES (3, 'new', 9)")
    if engine.dialect.name != "sqlite":
        postgresql = engine.dialect.name == "postgresql"
        alter("ALTER COLUMN n TYPE VARCHAR(9)" if postgresql else "MODIFY COLUMN n VARCHAR(9)")
        run(engine, "UPDATE usr SET n = 'nine' WHERE idu = 3")
    alter("ADD COLUMN c VARCHAR(40)")
    run(engine, "UPDATE usr SET c = 'new' WHERE idu = 1", "UPDATE city SET name = 'Köln'")
    alter("RENAME TO person", now="person")
    run(engine, "UPDATE person SET aa = 'last' WHERE idu = 2")


def url_of(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def published(engine: Engine, folder: Path) -> None:
    """Publish all waiting rows in one batch, in a folder for each format."""
    outputs = [FilesOutput(name=one, path=str(folder / one), format=one) for one in FORMATS]
    settings = Config(
        source=SourceConfig(url=url_of(engine), user="nobody"),
        publisher=PublisherConfig(wake_up=False, query_limit=1000),
        output=tuple(outputs),
    )
    publish_all(settings)


def convert(source: str, folder: Path, *more: str) -> None:
    """Convert a log, or files of its rows, by `eventlog convert`."""
    folder.mkdir()
    config = folder / "eventlog.toml"
    config.write_text('[source]\nuser = "nobody"\n')
    for one in FORMATS:
        order = [
            "convert",
            "database" if "://" in source else "files",
            source,
            "--to",
            one,
            "--out",
            str(folder / one),
            "--strict",
            *more,
        ]
        order += ["--config", str(config)]
        assert exit_code(order) == 0


NUMBERS = ("changeSequence", "transactionEventCounter", "transactionLastEvent")


def _unnumbered(message: dict[str, Any]) -> dict[str, Any]:
    """Remove a message's numbers: they depend on a publisher's documents.

    Numbers within transactions are given only by a conversion of whole ones.
    """
    headers = {name: value for name, value in message["headers"].items() if name not in NUMBERS}
    return message | {"headers": headers}


def said(folder: Path) -> dict[str, object]:
    """Read a folder's elements, messages and rows in order, however divided into files."""
    elements = "".join(bare(file.read_text()) for file in sorted((folder / "xds").rglob("*.xml")))
    messages = [
        (one.get("topic", file.parent.name), one.get("value", one))
        for file in sorted((folder / "messages").rglob("*.jsonl"))
        for one in map(json.loads, file.read_text().splitlines())
    ]
    rows = [
        (file.parent.name, row)
        for file in sorted((folder / "change-tables").rglob("*.parquet"))
        if file.parent.name.endswith("__ct")
        for row in pq.read_table(file).to_pylist()
    ]
    messages.sort(key=lambda one: one[1]["headers"]["changeSequence"])
    rows.sort(key=lambda one: (one[1]["header__change_seq"], one[1]["header__change_oper"] != "B"))
    for _, row in rows:
        del row["header__change_seq"]
    told = [(topic, _unnumbered(message)) for topic, message in messages]
    return {"xds": elements, "messages": told, "change-tables": rows}
