"""Two logs that are given one target by their defaults: the second is refused, or gets names of its own; nobody loses a row."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, create_engine

from tests.hardening.ledger.book import Ledger
from tests.hardening.ledger.checking import Finding, Shown, check
from tests.hardening.ledger.publishers import Command, within
from tests.hardening.ledger.runs import KAFKA, STYLES, Cell, Run, Servers, prepare, read_log, waiting
from tests.hardening.ledger.writers import SPAN, TABLES, Writer

REFUSED = 78
TOLD = re.compile(r"belongs to|another log").search
OUTPUTS = ("XDS files", "change files", "message files", "change tables", "HTTP", *KAFKA)


GROUPS = {name: [pytest.mark.xdist_group("kafka")] for name in KAFKA}
"""Whoever asks for the broker by its name is where all its tests are, or there would be two."""


@pytest.mark.in_turn
@pytest.mark.parametrize("output", [pytest.param(name, marks=GROUPS.get(name, ())) for name in OUTPUTS])
def test_two_logs_do_not_mix_in_one_target(
    request: pytest.FixtureRequest, tmp_path: Path, output: str, sqlite: Engine
) -> None:
    servers = Servers(kafka=request.getfixturevalue("broker").servers) if output in KAFKA else None
    first = Run(Cell(outputs=[output], handovers=[], moods="success"), sqlite, tmp_path, servers)
    other = create_engine(f"sqlite:///{tmp_path / 'other.db'}")
    with first.open():
        prepare(other, TABLES, STYLES)
        second = Run(first.cell, other, tmp_path)
        second.outputs = first.outputs
        writers = Writer(sqlite, first.ledger, 1, 1), Writer(other, second.ledger, 2, 1)
        one = first.start(first.config("first"))
        began = [one, one]
        try:
            publish((writers[0], sqlite, one))
            began[1] = second.start(second.config("second"))
            within(lambda: was_refused(began[1]) or began[1].holds, 10)
            publish((writers[0], sqlite, one), (writers[1], other, began[1]))
            one.tell(signal.SIGTERM)
            assert one.end() == 0, one.said
            began[0] = first.start(first.config("first"))
            for _ in range(3):
                publish((writers[0], sqlite, began[0]), (writers[1], other, began[1]))
            assert began[0].alive, began[0].said
        finally:
            for publisher in began:
                publisher.kill()
        shown = first.outputs[0].shown()
        assert wrong_of(first.ledger, sqlite, shown, lambda key: key < 2 * SPAN) == []
        if was_refused(began[1]):
            strangers = [one for one in shown.seen if one.place[1] >= 2 * SPAN]
            assert strangers == []
            assert {row.letter for row in read_log(other)} == {"N"}
        else:
            assert wrong_of(second.ledger, other, shown, lambda key: key >= 2 * SPAN) == []
        assert not first.outputs[0].watched()
    other.dispose()


def publish(*work: tuple[Writer, Engine, Command]) -> None:
    """Writes everywhere, and waits until all is published, or is known never to be."""
    for writer, _, _ in work:
        writer.big(20)
    for _, engine, publisher in work:
        done = within(lambda: not waiting(engine) or not publisher.alive or was_refused(publisher))  # noqa: B023  # used at once
        assert done, publisher.said


def was_refused(publisher: Command) -> bool:
    """Whether it was told that the target belongs to somebody else, and how that ends it."""
    if not publisher.alive and publisher.process.returncode == REFUSED:
        return True
    return any(TOLD(str(record.get("error", ""))) for record in publisher.journal)


def wrong_of(ledger: Ledger, engine: Engine, shown: Shown, is_mine: Callable[[int], bool]) -> list[Finding]:
    """What is wrong with one log's part of the target."""
    mine = replace(shown, seen=[one for one in shown.seen if is_mine(one.place[1])], answers={})
    return check(ledger, read_log(engine), [mine], {})
