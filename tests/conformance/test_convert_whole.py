"""Whole transactions in a conversion: the bytes that a publisher tells of the same rows, however the input is cut."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.cli.main import exit_code
from eventlog.convert.local import convert
from eventlog.convert.settings import (
    Conversion,
    LogInput,
    MessageFiles,
    TableFiles,
    Target,
)
from eventlog.core.errors import EX_USAGE, ConfigError, DataError, UsageError
from eventlog.core.model import Event
from eventlog.core.rules import Round
from eventlog.core.rules.definitions import DefinitionSpan
from eventlog.core.seams import Format
from eventlog.delivery.output import Output
from eventlog.policies.bound import Policy, PolicyFormat
from eventlog.policies.steps import Steps
from eventlog.publisher.encode import Encoded, Part, encode
from eventlog.publisher.whole_transactions import GoingOn
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog.sql.names import TRANSACTION
from eventlog.tracked.options import Style, TriggerOptions
from eventlog.xds.write import XdsFormat
from tests.support.converting import (
    converted,
    files_of,
    row_of,
    write_csv,
    write_parquet,
)
from tests.support.daily import daily
from tests.support.examples import examples
from tests.support.logged import run
from tests.support.memory import MemorySink
from tests.support.shares import met, shares
from tests.support.strategies import CATALOG, policies
from tests.support.writers import COLUMNS, Writers, rows_of

SETTINGS = MessageSettings(topic="{table}", batch_size=4)

pytestmark = pytest.mark.usefixtures("small_steps")


def published(events: list[Event], form: Format, steps: Steps = ()) -> Encoded:
    """Encode all events in one turn, as a publisher does."""
    needs = Policy(steps, CATALOG).needs if steps else None
    decision = Round(catalog=CATALOG, needs=needs).decide(events)
    output = Output(format=PolicyFormat(form, steps) if steps else form, sink=MemorySink([]), whole=True)
    part = Part(decision=decision, span=DefinitionSpan(catalog=CATALOG))
    nothing = GoingOn(every=frozenset(), soon=frozenset())
    return encode(output, [part], after="", counts={}, going_on=nothing)


def messages_of(told: Encoded) -> dict[str, list[bytes]]:
    """Group a publisher's messages by topic."""
    found = defaultdict[str, list[bytes]](list)
    for document in told.documents:
        assert isinstance(document, MessagesDocument)
        for one in document.messages:
            assert one.value is not None
            found[one.topic].append(one.value)
    return found


def messages_in(folder: Path) -> dict[str, list[bytes]]:
    """Group a conversion's messages by topic."""
    found = defaultdict[str, list[bytes]](list)
    for part in sorted(folder.rglob("part-*.jsonl")):
        found[part.parent.relative_to(folder).as_posix()] += part.read_bytes().splitlines()
    return found


@pytest.mark.in_turn
@daily
@shares(told=0.5, filtered=0.02)
@given(st.integers(0, 2**32), st.sampled_from([3, 7, 1000]), st.just(()) | policies())
@examples(20)
def test_messages_are_those_of_a_publisher(seed: int, part_events: int, steps: Steps) -> None:
    events = Writers(seed).write(60)
    try:
        told = published(events, MessageFormat(settings=SETTINGS, body=False), steps)
    except ConfigError as error:
        with pytest.raises(ConfigError, match=re.escape(str(error))):
            Policy(steps, CATALOG)
        return
    met(told=told.documents, filtered=any(one.reason.value == "filtered" for one in told.outcomes.values()))
    with TemporaryDirectory() as folder:
        source, out = write_parquet(Path(folder) / "log.parquet", rows_of(events), COLUMNS), Path(folder) / "out"
        asked: dict[str, Any] = {"target": MessageFiles(settings=SETTINGS), "part_events": part_events, "steps": steps}
        converted(source, out, catalog=CATALOG, transactions="whole", **asked)
        assert messages_in(out) == messages_of(told)


@pytest.mark.parametrize("part_events", [3, 5, 8, 20])
def test_a_part_has_whole_transactions_as_long_as_one_has_room_in_it(tmp_path: Path, part_events: int) -> None:
    events = Writers(part_events).write(200)
    source = write_parquet(tmp_path / "log.parquet", rows_of(events), COLUMNS)
    target = MessageFiles(settings=SETTINGS)
    out = tmp_path / "out"
    done = converted(source, out, catalog=CATALOG, target=target, part_events=part_events, transactions="whole")
    names = sorted(file.name for file in out.glob("usr/part-*.jsonl"))
    assert names == [f"part-{number:05d}.jsonl" for number in range(done.parts)]
    parts = defaultdict[str, list[int]](list)
    for number, name in enumerate(names):
        for line in (out / "usr" / name).read_bytes().splitlines():
            parts[json.loads(line)["headers"]["transactionId"]].append(number)
    del parts[""]
    for places in parts.values():
        assert len(places) > part_events or len(set(places)) == 1
    assert part_events > 3 or any(len(places) > part_events for places in parts.values())
    assert sum(len((out / "usr" / name).read_bytes().splitlines()) > part_events for name in names) > 2


FORMS: list[Target] = [XdsFormat(), TableFiles(), MessageFiles(settings=SETTINGS)]


@pytest.mark.parametrize("form", FORMS)
def test_files_and_processes_do_not_matter(tmp_path: Path, form: Target) -> None:
    rows = rows_of(Writers(6).write(150))
    one = write_parquet(tmp_path / "one.parquet", rows, COLUMNS)
    mixed = Random(1).sample(rows, len(rows))
    several = [
        write_parquet(tmp_path / "some.parquet", mixed[::2], COLUMNS),
        write_csv(tmp_path / "others.csv", mixed[1::2], COLUMNS),
    ]
    told: dict[str, Any] = {"catalog": CATALOG, "target": form, "transactions": "whole", "part_events": 7}
    here = converted(one, tmp_path / "here", **told)
    there = converted(several, tmp_path / "there", jobs=2, **told)
    assert (here.parts, here.changes) == (there.parts, there.changes)
    assert files_of(tmp_path / "there") == files_of(tmp_path / "here")
    converted(one, tmp_path / "mixed", **told | {"transactions": "mixed"})
    assert files_of(tmp_path / "mixed") != files_of(tmp_path / "here")


def test_rows_that_do_not_say_their_transaction_are_counted(tmp_path: Path) -> None:
    events = Writers(7, unknown=0.5).write(40)
    alone = sum(event.transaction is None for event in events)
    source = write_parquet(tmp_path / "log.parquet", rows_of(events), COLUMNS)
    done = converted(source, tmp_path / "out", catalog=CATALOG, transactions="whole")
    assert done.notes == (
        f"{alone} rows of 40 have no {TRANSACTION}; each of their changes is a transaction of its own.",
    )


def test_files_that_know_no_transactions_are_refused(tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "log.parquet", [row_of(event) for event in Writers(8).write(10)])
    with pytest.raises(DataError, match="No row of the input has a number in eventlog_transaction"):
        converted(source, tmp_path / "out", catalog=CATALOG, transactions="whole")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_a_log_that_knows_no_transactions_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    engine = create_engine(url)
    install(engine)
    engine.dispose()
    order = Conversion(input=LogInput(url=url), destination=tmp_path / "out", catalog=CATALOG, transactions="whole")
    with pytest.raises(UsageError, match="event_log has no column eventlog_transaction"):
        convert(order)


@pytest.fixture
def log(postgresql: Engine) -> Engine:
    """Make the log of a table with eight transactions."""
    install(postgresql)
    run(postgresql, "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64))")
    track(postgresql, ["usr"], TriggerOptions(style=Style.IMAGE))
    for number in range(1, 9):
        run(postgresql, f"INSERT INTO usr VALUES ({number}, 'a')")
    return postgresql


def command(log: Engine, out: Path, *words: str) -> int:
    url = log.url.render_as_string(hide_password=False)
    return exit_code(
        ["convert", "database", url, "--to", "messages", "--out", str(out), "--engine", "local[1]", *words]
    )


def test_what_an_output_has_in_the_configuration_counts_and_rows_are_marked(log: Engine, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        '[source]\nuser = "nobody"\n'
        '[[output]]\nsink = "files"\npath = "out"\nformat = "messages"\ntransactions = "whole"\n'
    )
    assert command(log, tmp_path / "out", "--mark", "--config", str(tmp_path / "c.toml")) == 0
    headers = [json.loads(line)["headers"] for lines in messages_in(tmp_path / "out").values() for line in lines]
    assert [(one["transactionEventCounter"], one["transactionLastEvent"]) for one in headers] == [(1, True)] * 8
    with log.connect() as connection:
        assert connection.execute(text("SELECT DISTINCT status FROM event_log")).scalars().all() == ["S"]


def test_rows_that_somebody_holds_are_not_left_out_of_their_transaction(
    log: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(log, "INSERT INTO event_log_hold (record_id) SELECT MAX(record_id) FROM event_log")
    (tmp_path / "c.toml").write_text(
        '[[output]]\nsink = "files"\npath = "out"\nformat = "messages"\ntransactions = "whole"\n'
    )
    assert command(log, tmp_path / "out", "--config", str(tmp_path / "c.toml")) == EX_USAGE
    assert "are held, or an output lacks them, so transactions are not whole" in capsys.readouterr().err
    assert command(log, tmp_path / "out") == 0
