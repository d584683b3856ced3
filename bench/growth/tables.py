"""What each captured table costs the commands that look at all of them, when there are up to a thousand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import text

from bench.backlog import temporary_folder
from bench.growth.logs import addresses, engine_of, make_tables
from bench.growth.series import powers, targets
from bench.growth.shape import Shape
from bench.measure import Benchmark, Contestant
from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states, untrack
from eventlog.check.examine import check
from eventlog.check.point import PointLevel
from eventlog.config.settings import Config, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions

ONCE: Final = 1_000


class Many:
    """So many tables of four columns, in a log of their own."""

    def __init__(self, address: str, number: int) -> None:
        self.address = address
        self.engine = engine_of(address)
        self.shape = Shape(rows=1, columns=3, tables=number, prefix=f"of_{number}_")
        self.names = LogNames(table=f"many_{number}")
        self._tracked: bool | None = None

    def bare(self) -> None:
        """No table is tracked."""
        self._make()
        if self._tracked:
            untrack(self.engine, self.shape.names, self.names)
        self._tracked = False

    def tracked(self) -> None:
        """Every table is tracked, and the database knows how many that makes."""
        self._make()
        if not self._tracked:
            self.track()

    def track(self) -> None:
        """Makes the triggers of all tables."""
        track(self.engine, self.shape.names, TriggerOptions(style=Style.FIELD), self.names)
        self._tracked = True

    def look(self) -> None:
        """Compares every trigger with what it should be."""
        if {found.state for found in trigger_states(self.engine, self.names)} != {TriggerCondition.CURRENT}:
            raise AssertionError("every trigger was to be current")

    def start(self) -> None:
        """Opens a publisher, which looks at all tables, and lets it poll once."""
        with Publisher(self._config()) as publisher:
            publisher.run_once()

    def check(self) -> None:
        """Looks for whatever could be wrong."""
        if any(point.level is PointLevel.FAILURE for point in check(self._config)):
            raise AssertionError("nothing was to be wrong")

    def _make(self) -> None:
        if self._tracked is None:
            install(self.engine, self.names)
            make_tables(self.engine, self.shape)
            with self.engine.begin() as connection:
                connection.execute(text("ANALYZE"))
            self._tracked = False

    def _config(self) -> Config:
        source = SourceConfig(url=self.address, log=self.names.table, tables=self.shape.names)
        return Config(source=source, output=(FilesOutput(path=str(temporary_folder() / "out")),))


def benchmark(*, quick: bool) -> Benchmark:
    """From one table to a thousand."""
    sizes = powers(0, 1) if quick else powers(0, 3)
    return Benchmark(
        name="growth.tables",
        question="what does a captured table cost those who look at all of them?",
        unit="table",
        contestants=[one for name in addresses() for size in sizes for one in _contestants(name, size)],
        targets=targets,
        note=(
            "Tables without rows, of four columns; triggers in the style of fields. A publisher's start counts its first"
            f" poll, `check` all its points. {ONCE:,} tables ran once."
        ),
    )


def _contestants(database: str, size: int) -> Iterator[Contestant]:
    many = Many(addresses()[database], size)
    for what, prepare, run in (
        ("track", many.bare, many.track),
        ("triggers", many.tracked, many.look),
        ("a publisher's start", many.tracked, many.start),
        ("check", many.tracked, many.check),
    ):
        series = f"{what}, {database}"
        yield Contestant(
            name=f"{series}: {size:,}",
            prepare=prepare,
            run=run,
            units=size,
            series=series,
            size=size,
            once=size >= ONCE,
        )
