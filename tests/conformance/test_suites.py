"""The suites that authors inherit, over what eventlog has itself: what we promise of the seams, our own keep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from eventlog.core.seams import Format
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.sinks.files import FileSink
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.gbase.source import gbase_reader
from eventlog.testing import FormatSuite, SinkSuite, SinkTarget, SourceStream, SourceSuite
from eventlog.xds.write import XdsFormat
from eventlog_streams_tools.gbase.emulator import reads, shop
from tests.support import sink_places


class TestFiles(SinkSuite):
    @pytest.fixture
    def target(self, tmp_path: Path) -> SinkTarget:
        folder = tmp_path / "out"
        return SinkTarget(
            make=lambda: FileSink(folder, ".xml"), ids=lambda: sorted(one.stem for one in folder.glob("*.xml"))
        )


class TestChangeTables(SinkSuite):
    @pytest.fixture
    def target(self, tmp_path: Path) -> Iterator[SinkTarget]:
        engine = create_engine(f"sqlite:///{tmp_path / 'tables.db'}")
        with sink_places.database(engine) as place:
            yield SinkTarget(
                make=place.make,
                ids=lambda: [place.document(number).id for number in place.found()],
                document=place.document,
            )
        engine.dispose()  # or its connection is garbage, which Python 3.13 and later warn of


class TestXds(FormatSuite):
    @pytest.fixture
    def form(self) -> Format:
        return XdsFormat(batch_size=2)


class TestChangeTableFormat(FormatSuite):
    @pytest.fixture
    def form(self) -> Format:
        return ChangeTableFormat()


class TestCaptures(SourceSuite):
    @pytest.fixture
    def stream(self, tmp_path: Path) -> SourceStream:
        file = tmp_path / "capture.bin"
        file.touch()
        pieces = list(reads(shop(12, 1)))
        half = len(pieces) // 2
        rest = iter([b"".join(pieces[:half]), b"".join(pieces[half:])])

        def grow() -> None:
            with file.open("ab") as out:
                out.write(next(rest, b""))

        settings = GBaseSettings(path=str(file))
        return SourceStream(make=lambda: gbase_reader(settings), grow=grow)
