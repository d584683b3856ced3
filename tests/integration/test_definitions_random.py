"""Random DDL between random writes, rows waiting, the publisher up or down: every change is told as it was, none is an error,
and a mirror that is built from each format equals the table at every quiet point.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from eventlog.capture.install import install, uninstall
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import MachineError
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.ddl_histories import ChangeFiles, Fact, MessageFiles, RowMirror, Told, Work, XdsMirror
from tests.support.logged import run

STEPS = 32


def publisher_of(engine: Engine, folder: Path) -> Publisher:
    outputs = [
        FilesOutput(name="messages", path=str(folder / "messages"), format="messages"),
        FilesOutput(name="xds", path=str(folder / "xds"), format="xds"),
        FilesOutput(name="tables", path=str(folder / "tables"), format="change-tables"),
    ]
    config = Config(
        source=SourceConfig(url=engine.url.render_as_string(hide_password=False), user="nobody"),
        publisher=PublisherConfig(wake_up=False, polling_interval=1, batch_size=16),
        output=tuple(outputs),
    )
    return Publisher(config)


class Audience:
    """A publisher that is up or down, and those who read what it tells: a mirror for each format."""

    def __init__(self, work: Work, folder: Path, style: Style, seed: int) -> None:
        self.work, self.folder, self.style, self.seed = work, folder, style, seed
        self.sources: list[MessageFiles | ChangeFiles] = [
            MessageFiles(folder / "messages"),
            ChangeFiles(folder / "tables"),
        ]
        self.told: list[list[Told]] = [[] for _ in self.sources]
        self.mirrors = [RowMirror() for _ in self.sources]
        self.directory = XdsMirror(folder / "xds")
        self.publisher: Publisher | None = None

    def up(self) -> Publisher:
        """The publisher, which is started where it is down."""
        if self.publisher is None:
            self.publisher = publisher_of(self.work.engine, self.folder)
            self.publisher.__enter__()
        return self.publisher

    def down(self) -> None:
        """Ends the publisher."""
        if self.publisher is not None:
            self.publisher.__exit__(None, None, None)
            self.publisher = None

    def quiet(self) -> None:
        """Everything is committed and told: every mirror has what the table has."""
        self.work.settle()
        for _ in self.up().rounds(until_empty=True):
            pass
        query = (
            "SELECT l.record_id, l.status, o.note FROM event_log l LEFT JOIN event_log_outcome o"
            " ON o.record_id = l.record_id WHERE l.status NOT IN ('S', 'W')"
        )
        with self.work.engine.connect() as connection:
            assert connection.execute(text(query)).all() == [], self.where
        self.listen()
        modelled = self.work.modelled()
        assert self.work.stored() == modelled, self.where
        assert self.directory.shown(self.work) == modelled, self.where
        if self.style is not Style.FIELD_BACK:  # names of then, and values of today
            for mirror in self.mirrors:
                assert mirror.shown(self.work) == modelled, self.where

    def busy(self) -> None:
        """The publisher takes a turn while writers are in the middle of transactions, for whose locks it may wait in vain."""
        try:
            self.up().run_once()
        except MachineError as error:
            if not error.may_pass:
                raise
        self.listen()

    def listen(self) -> None:
        """Takes what is told before names change again."""
        self.directory.apply(self.work)
        for source, mirror, told in zip(self.sources, self.mirrors, self.told, strict=True):
            news = source.told()
            told.extend(news)
            if self.style is not Style.FIELD_BACK:
                mirror.apply(news, self.work, of_then=self.style is not Style.ROW_BACK)

    def told_as_it_was(self) -> None:
        """Every change has the values and the names of its time, those of each row in their order."""
        facts = self.work.facts
        for told in self.told:
            for key in {one.key for one in facts}:
                found = [self._said(one) for one in told if one.key == key]
                assert found == [self._meant(one) for one in facts if one.key == key], self.where

    def _said(self, one: Told) -> tuple[object, ...]:
        if self.style is Style.IMAGE:
            return one.table, one.op, one.before, one.after
        return one.table, one.op, None if one.op == "DELETE" else _known(one.named)

    def _meant(self, one: Fact) -> tuple[object, ...]:
        if self.style is Style.IMAGE:
            return one.table, one.op, one.before, one.after
        return one.table, one.op, None if one.op == "DELETE" else _known(one.written)

    @property
    def where(self) -> str:
        return f"seed {self.seed}\n" + "\n".join(self.work.said)


def _known(row: dict[str, object]) -> dict[str, object]:
    """The values of a row: not all masks have the key, and what is NULL of a new row needs no row of the log."""
    return {name: value for name, value in row.items() if value is not None and name not in ("idu", "idx")}


def history(engine: Engine, folder: Path, seed: int, style: Style) -> str:
    """One history; tells what its table is called at the end."""
    follows = engine.dialect.name == "postgresql"
    work = Work(engine, seed, TriggerOptions(style=style, follow_ddl=follows))
    rng = random.Random(seed + 1)
    audience = Audience(work, folder, style, seed)
    is_up = rng.random() < 0.5
    try:
        for _ in range(STEPS):
            if rng.random() < 0.25:
                work.alter()
            else:
                work.write()
            if is_up and rng.random() < 0.2:
                audience.quiet()
            elif is_up and rng.random() < 0.3:
                audience.busy()
            if rng.random() < 0.1:
                is_up = not is_up
                audience.down()
        audience.quiet()
    finally:
        work.close()
        audience.down()
    if style in (Style.IMAGE, Style.FIELD):
        audience.told_as_it_was()
    return work.table


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "database, style",
    [
        ("postgresql", Style.IMAGE),
        ("postgresql", Style.ROW_BACK),
        ("mariadb", Style.IMAGE),
        ("mariadb", Style.FIELD),
        ("sqlite", Style.FIELD),
        ("sqlite", Style.IMAGE),
    ],
)
def test_every_change_is_told_as_it_was(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, style: Style
) -> None:
    assert histories(request.getfixturevalue(database), tmp_path, style, 1) == 1


@pytest.mark.long
@pytest.mark.parametrize("style", [Style.IMAGE, Style.FIELD, Style.FIELD_BACK, Style.ROW_BACK])
@pytest.mark.parametrize("database", ["postgresql", "mariadb", "sqlite"])
def test_many_histories(request: pytest.FixtureRequest, tmp_path: Path, database: str, style: Style) -> None:
    if style is Style.FIELD_BACK and database != "postgresql":
        pytest.skip("nobody knows there what a column is called that would be read back")
    count = int(os.environ.get("EVENTLOG_HISTORIES", "50"))
    assert histories(request.getfixturevalue(database), tmp_path, style, count) == count


def histories(engine: Engine, folder: Path, style: Style, count: int) -> int:
    """So many histories, each in a log of its own; how many there were. Their seeds follow each other."""
    first = int(os.environ.get("EVENTLOG_SEED") or random.SystemRandom().randrange(10**6))
    for seed in range(first, first + count):
        install(engine)
        last = history(engine, folder / str(seed), seed, style)
        uninstall(engine, purge=True)
        run(engine, f"DROP TABLE {last}")
    return count
