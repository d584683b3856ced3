"""Publishing without triggers: whatever writers do and whenever it crashes, who takes the images ends with the table's rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine

from eventlog.core.errors import ConfigError, DataError, OccupiedError
from eventlog.core.model import Image, Op, Position
from eventlog.sources.compare.catalog import read_compared_catalog
from eventlog.sources.compare.reader import compare_reader
from eventlog.sources.compare.settings import CompareSettings
from eventlog.sources.compare.state import CompareState
from eventlog.sources.compare.tables import PREFIX
from eventlog.sources.stream.kept import DatabaseKeeper
from eventlog.sources.stream.source import FileMarks, StreamMarks
from eventlog.sql.reflect import reflect
from tests.support.captured import Capturing
from tests.support.compared import made_source, random_row

Row = dict[str, Any]


class Consumer:
    """Keeps rows by what images tell, and refuses what cannot have happened."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self.rows: dict[Any, Row] = {}
        self.seen: set[Position] = set()
        self._key = key

    def take(self, images: Any) -> None:
        for image in images:
            assert isinstance(image, Image)
            row = image.after or image.before or {}
            key = tuple(row[name] for name in self._key)
            assert image.position not in self.seen, "no image comes twice"
            assert self.rows.get(key) == image.before, image
            self.seen.add(image.position)
            if image.op is Op.DELETE:
                self.rows.pop(key, None)
            else:
                self.rows[key] = dict(image.after or {})


def keeper_in(kept: Engine) -> DatabaseKeeper:
    """Make the keeper of state and marks in a database."""
    return DatabaseKeeper(kept.url.render_as_string(hide_password=False), PREFIX, 30)


class Site:
    """A table, a source that compares it, and who takes what it gives."""

    def __init__(self, engine: Engine, folder: Path, key: str, kept: Engine | None = None, **settings: Any) -> None:
        self.engine = engine
        self.kept_in = kept
        self.keeper = None if kept is None else keeper_in(kept)
        self.table = made_source(engine, key)
        self.kind = key
        self.settings = CompareSettings(state=str(folder / "state.db"), marks=str(folder / "marks.json"), **settings)
        self.log = folder / "log.db"
        self.reports: list[str] = []
        self.consumer = Consumer(tuple(column.name for column in self.table.primary_key.columns))
        self.source = self.opened()

    def opened(self, **changed: Any) -> Capturing:
        from msgspec.structs import replace

        settings = replace(self.settings, **changed)
        catalog = reflect(self.engine, ["usr"])
        marks: StreamMarks = FileMarks(Path(settings.marks))
        if self.keeper is not None:
            assert self.keeper.take() is not None
            marks = self.keeper.marks()
        reader = compare_reader(self.engine, catalog, settings, marks, report=self.reports.append)
        return Capturing(reader, self.log, 100)

    @contextmanager
    def kept(self) -> Iterator[sa.Connection]:
        """Connect to the database of the state."""
        engine = sa.create_engine(f"sqlite:///{self.settings.state}" if self.kept_in is None else self.kept_in.url)
        with engine.begin() as connection:
            yield connection
        engine.dispose()

    @property
    def about(self) -> str:
        return "about" if self.keeper is None else f"{PREFIX}_about"

    def lose(self) -> None:
        """Remove the state, and leave the marks."""
        self.source.close()
        if self.keeper is None:
            Path(self.settings.state).unlink()
            return
        metadata = sa.MetaData()
        with self.kept() as connection:
            metadata.reflect(connection, only=lambda name, _: name.startswith(PREFIX) and not name.endswith("_mark"))
            metadata.drop_all(connection)

    def reopen(self, **changed: Any) -> None:
        """Reopen the source as after a crash: nothing in memory is left."""
        self.source.close()
        self.source = self.opened(**changed)

    def write(self, dice: random.Random, many: int, numbers: int = 40) -> None:
        with self.engine.begin() as connection:
            for _ in range(many):
                row = random_row(dice, self.kind, dice.randrange(numbers))
                mine = [column == row[column.name] for column in self.table.primary_key.columns]
                if connection.execute(sa.select(sa.literal(1)).select_from(self.table).where(*mine)).first() is None:
                    connection.execute(self.table.insert(), [row])
                elif dice.random() < 0.3:
                    connection.execute(self.table.delete().where(*mine))
                else:
                    names = dice.sample([name for name in row if name not in self.table.primary_key.columns], 2)
                    connection.execute(self.table.update().where(*mine).values({name: row[name] for name in names}))

    def drain(self) -> int:
        """Take all images, and return how many."""
        images = self.source.take()
        self.consumer.take(images)
        return len(images)

    def state(self) -> dict[Any, Row]:
        """Read the table's rows by key, as a new source tells them."""
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(self.table)).mappings().all()
        return {tuple(str(row[c.name]) for c in self.table.primary_key.columns): dict(row) for row in rows}

    def equal(self) -> bool:
        """Return True if the consumer has the table's rows: by their keys, and by a fresh comparison."""
        return {tuple(map(str, key)) for key in self.consumer.rows} == set(self.state()) and not self.drain()


@pytest.fixture(params=["file", "database"])
def site(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    kept: Engine | None = None
    if request.param == "database":
        kept = request.getfixturevalue("postgresql") if engine.dialect.name == "sqlite" else engine
    made = Site(engine, tmp_path, "both", kept)
    yield made
    made.source.close()
    if made.keeper is not None:
        made.keeper.leave()


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(6))
def test_a_crash_at_any_point_neither_repeats_nor_loses(
    sqlite: Engine, postgresql: Engine, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    site = Site(sqlite, tmp_path, dice.choice(["number", "both"]), postgresql if seed % 2 else None)
    for _ in range(120):
        what = dice.choice(["write", "capture", "take", "crash", "torn", "untold"])
        if what == "write":
            site.write(dice, dice.randint(1, 12))
        elif what == "capture":
            site.source.capture()
        elif what == "take":
            site.consumer.take(site.source.taken())
        elif what in ("torn", "untold"):
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(CompareState, "note_end" if what == "torn" else "forget", _torn)
                with suppress(TornError):
                    site.source.capture()
            site.reopen()
        elif what == "crash":
            site.reopen()
    site.reopen()
    for _ in range(3):
        site.drain()
    assert site.equal()
    site.source.close()
    if site.keeper is not None:
        site.keeper.leave()


class TornError(Exception):
    """The process dies in the middle of a step."""


def _torn(_state: CompareState, _step: int) -> None:
    raise TornError


def test_a_state_that_is_gone_is_said_and_replaced_as_was_asked(site: Site) -> None:
    dice = random.Random(3)
    site.write(dice, 30)
    site.drain()
    site.lose()
    site.reopen()
    for _ in range(2):  # a service is started again
        with pytest.raises(DataError, match=r"usr has lost its state.*on_lost"):
            site.source.take()
        site.reopen()
    site.reopen(on_lost="future-only")
    assert site.drain() == 0
    assert "future-only" in site.reports[-1]
    site.reopen()
    site.write(dice, 30)
    site.reopen()
    assert site.drain() > 0
    assert site.equal()
    site.lose()
    site.reopen(on_lost="resync")
    site.consumer.rows.clear()
    assert site.drain() == len(site.consumer.rows)
    assert site.equal()


def test_an_older_state_loses_no_change(sqlite: Engine, tmp_path: Path) -> None:
    """What was published since it was copied may come again, but what follows is never passed over."""
    site = Site(sqlite, tmp_path, "number")
    dice = random.Random(4)
    site.write(dice, 30)
    site.drain()
    older = Path(site.settings.state).read_bytes()
    published = dict(site.consumer.rows)
    for _ in range(3):
        site.write(dice, 30)
        site.drain()
    site.source.close()
    Path(site.settings.state).write_bytes(older)
    site.source = site.opened()
    site.write(dice, 30)
    site.consumer.rows = published
    assert site.drain() > 0
    assert site.equal()
    site.source.close()


def test_a_state_of_a_later_version_is_refused(site: Site) -> None:
    site.write(random.Random(3), 3)
    site.drain()
    with site.kept() as connection:
        connection.execute(sa.text(f"UPDATE {site.about} SET value = '99' WHERE name = 'version'"))
    with pytest.raises(DataError, match="of version 99"):
        site.reopen()


def test_new_columns_are_told_as_changes(site: Site) -> None:
    site.write(random.Random(5), 20)
    site.drain()
    with site.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE usr ADD COLUMN level INTEGER")
        connection.exec_driver_sql("UPDATE usr SET level = 7 WHERE size > 0")
        many = connection.exec_driver_sql("SELECT count(*) FROM usr WHERE size > 0").scalar_one()
    site.reopen()
    with pytest.raises(DataError, match="other columns than before"):
        site.source.take()
    site.reopen(on_lost="resync")
    images = site.source.take()
    assert len(images) == many > 0
    assert {one.op for one in images} == {Op.MODIFY}


def test_from_now_on_only(engine: Engine, tmp_path: Path) -> None:
    site = Site(engine, tmp_path, "number", start="future-only")
    site.write(random.Random(1), 20)
    assert site.drain() == 0
    with engine.begin() as connection:
        connection.execute(site.table.delete())
    images = site.source.take()
    assert {one.op for one in images} == {Op.DELETE}
    assert all(one.before for one in images)
    site.source.close()


def test_a_column_that_grows_is_looked_at_between_full_cycles(engine: Engine, tmp_path: Path) -> None:
    site = Site(engine, tmp_path, "number", every=3600, growing={"usr": "size"})
    rows = [random_row(random.Random(n), "number", n) | {"id": n, "size": n} for n in range(10)]
    with engine.begin() as connection:
        connection.execute(site.table.insert(), rows)
    assert site.drain() == 10
    with engine.begin() as connection:
        connection.execute(site.table.update().where(site.table.c.id == 3).values(size=20, name="new"))
        connection.execute(site.table.update().where(site.table.c.id == 4).values(name="not seen yet"))
        connection.execute(site.table.delete().where(site.table.c.id == 5))
    assert site.drain() == 1
    site.reopen()
    assert site.drain() == 2
    site.source.close()


def test_a_column_that_grows_is_looked_at_in_a_table_that_was_empty(engine: Engine, tmp_path: Path) -> None:
    site = Site(engine, tmp_path, "number", every=3600, growing={"usr": "size"})
    assert site.drain() == 0
    rows = [random_row(random.Random(n), "number", n) | {"id": n, "size": n} for n in range(3)]
    for row in rows:
        with engine.begin() as connection:
            connection.execute(site.table.insert(), [row])
        assert site.drain() == 1
    with engine.begin() as connection:
        connection.execute(site.table.delete())
    assert site.drain() == 0, "only a full cycle sees that"
    with engine.begin() as connection:
        connection.execute(site.table.insert(), [rows[2] | {"id": 9, "size": 9}])
    assert site.drain() == 4
    site.source.close()


@pytest.mark.parametrize("kept", ["postgresql", "mariadb"])
def test_a_state_has_one_publisher_and_who_is_replaced_changes_nothing(
    kept: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine: Engine = request.getfixturevalue(kept)
    site = Site(engine, tmp_path, "number", engine)
    assert site.keeper is not None
    site.write(random.Random(1), 20)
    site.drain()
    site.write(random.Random(2), 20)
    other = keeper_in(engine)
    assert other.take() is None
    with site.kept() as connection:  # its lease has run out, and it does not know yet
        connection.execute(sa.text(f"DELETE FROM {PREFIX}_mark WHERE name = 'publisher'"))
    assert other.take() is not None

    def state() -> list[Any]:
        """Read the state's notes and its queued images."""
        with site.kept() as connection:
            noted = connection.execute(sa.text(f"SELECT name, value FROM {PREFIX}_about ORDER BY name")).all()
            queued = connection.execute(sa.text(f"SELECT step, place FROM {PREFIX}_queue ORDER BY step, place")).all()
            return [noted, queued]

    before = state()
    with pytest.raises(OccupiedError):
        site.source.take()
    assert state() == before
    with pytest.raises(OccupiedError):
        site.keeper.take()
    site.source.close()
    site.keeper.drop()
    site.keeper = other
    site.source = site.opened()
    assert site.drain()
    assert site.equal()
    site.source.close()
    other.leave()


@pytest.mark.parametrize("kept", ["postgresql", "mariadb"])
def test_two_publishers_may_make_the_marks_at_once(
    kept: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine: Engine = request.getfixturevalue(kept)
    first, second = keeper_in(engine), keeper_in(engine)
    assert first.take() is not None
    create = sa.Table.create

    def blindly(table: sa.Table, bind: Any, **_: Any) -> None:
        """Create the table unchecked, as if the other publisher made it after the check."""
        create(table, bind, checkfirst=False)

    monkeypatch.setattr(sa.Table, "create", blindly)
    assert second.take() is None
    first.leave()
    second.drop()


def test_tables_of_the_state_are_not_compared(postgresql: Engine, tmp_path: Path) -> None:
    site = Site(postgresql, tmp_path, "number", postgresql)
    site.drain()
    with postgresql.connect() as connection:
        assert [one.name for one in read_compared_catalog(connection, (), None, site.settings)] == ["usr"]
    site.source.close()


def test_a_state_in_sqlite_is_named_by_its_path() -> None:
    with pytest.raises(ConfigError, match=r"source\.compare\.state"):
        CompareSettings(state="sqlite:////tmp/state.db")
    with pytest.raises(ConfigError, match=r"source\.compare\.marks"):
        CompareSettings(state="postgresql://reader@db/state", marks="marks.json")
