"""Who cares for a log does not know its tables: what that one parks comes before what is behind it all the same."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine

from eventlog.care.journal import hold
from eventlog.care.outputs import skip
from eventlog.core.rules import Options, Round
from eventlog.core.schema import Catalog, Column, Table
from eventlog.delivery.output import Output
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.decide import Decider
from eventlog.publisher.journal import Journal
from eventlog.publisher.turn_report import ConsumerSettings
from eventlog.sources.marks import RowRanges
from eventlog.xds.write import XdsFormat
from tests.publisher.scene import Scene

TABLES = Catalog([Table(name="USR", columns=(Column(name="idu", key=1), Column(name="fname")))])
"""The database writes a name in another way than the log."""


def test_what_is_parked_while_others_are_skipped_is_not_overtaken(sqlite: Engine) -> None:
    scene = Scene(sqlite, "one", "far")
    scene.journal = Journal(scene.log, scene.lock, scene.journal.settings, TABLES)
    for name in scene.consumers:
        sink: Any = scene.receivers[name]
        decider = Decider(Round(catalog=TABLES, options=Options()))
        output = Output(format=XdsFormat(), sink=sink, name=name)
        scene.consumers[name] = Consumer(scene.journal, output, decider, ConsumerSettings(limit=5))
    scene.write(1, 6, objects=3)
    scene.publish("one")  # the other one has a batch ahead
    assert skip(scene.log, "far", RowRanges.run(1, 1), by="a test") == 1
    with scene.log.transaction() as connection:
        hold(connection, scene.log, [(2, 2)], "a test")
    scene.publish()
    scene.write(7, 8, objects=3)
    scene.publish()
    assert scene.receivers["far"].came == [3, 4, 6, 7]  # rows 5 and 8 are of the object of the row that is held
    assert scene.receivers["one"].came == [*range(1, 9)]
