"""Bulk conversion to messages: what the daemon's format gives, numbered alike, however it is cut and by whoever."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert import plan
from eventlog.convert.settings import MessageFiles
from eventlog.core.rules import decide
from eventlog.core.seams import encode
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from tests.support.converting import converted, row_of, write_parquet, write_snapshot
from tests.support.daily import daily
from tests.support.examples import examples
from tests.support.strategies import CATALOG, History, histories

PLAIN = MessageSettings(topic="{table}")


@pytest.fixture(autouse=True, scope="module")
def _small_steps() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "BUCKET_ROWS", 4)
        patch.setattr(plan, "RANGE_ROWS", 4)
        patch.setattr(plan, "SPAN_EVENTS", 2)
        yield


def of_the_daemon(history: History, form: MessageSettings) -> list[bytes]:
    """The values of the messages that the daemon's format writes when it reads everything at once."""
    changes = decide(history.events, dict(history.table), catalog=CATALOG).changes
    documents = encode(MessageFormat(settings=form, body=False), changes, CATALOG)
    told = [one for one in documents if isinstance(one, MessagesDocument)]
    return [message.value or b"" for document in told for message in document.messages]


def values(out: Path) -> list[bytes]:
    """The values in the files of one topic after the other."""
    return [line for path in sorted(out.glob("*/part-*.jsonl")) for line in path.read_bytes().splitlines()]


def by_number(found: list[bytes]) -> list[bytes]:
    return sorted(found, key=lambda value: json.loads(value)["headers"]["changeSequence"])


@daily
@given(histories(), st.integers(1, 4))
@examples(20)
def test_histories_give_the_daemons_messages(history: History, part_events: int) -> None:
    with TemporaryDirectory() as folder:
        place = Path(folder)
        source = write_parquet(place / "log.parquet", [row_of(event) for event in history.events])
        rows, form = write_snapshot(place / "snapshot", history.table), MessageFiles(settings=PLAIN)
        converted(source, place / "out", catalog=CATALOG, part_events=part_events, read_back=rows, target=form)
        assert by_number(values(place / "out")) == of_the_daemon(history, PLAIN)
