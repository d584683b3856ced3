"""`decode messages` reads topics: straight from a broker, and as kcat writes them into a file."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import msgspec
import pytest

from eventlog.cli.main import exit_code
from eventlog.core.model import Op
from eventlog.sinks.kafka.sink import KafkaSink
from tests.support.messages import change, documents, inserted, updated
from tests.support.servers_kafka import settings

CHANGES = [inserted(1, customer="Ada", note="a\0b\n\xff"), updated(1, customer=("Ada", "Żółć")), change(1, Op.DELETE)]


def sent(servers: str, name: str, **how: Any) -> tuple[str, str]:
    """The topics of the changes and of their metadata."""
    topic, about = f"decoded.{name}", f"decoded.{name}.about"
    with closing(KafkaSink(settings(servers))) as sink:
        sink.commit("", documents(CHANGES, topic=topic, metadata_topic=about, mode="metadata", **how))
    return topic, about


def shown(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_topics_are_read_from_a_broker(mock_cluster: str, capsys: pytest.CaptureFixture[str], encoding: str) -> None:
    topic, about = sent(mock_cluster, f"broker.{encoding}", encoding=encoding)
    assert exit_code(["decode", "messages", topic, about, "--kafka", mock_cluster, "--json"]) == 0
    found = shown(capsys)
    assert sorted(one.get("operation") or one["kind"] for one in found) == ["DELETE", "INSERT", "UPDATE", "metadata"]
    assert {one["row"]["order_id"] for one in found if one["kind"] == "data"} == {1}
    assert any(one["place"].startswith(f"{about}, partition ") for one in found)


def test_a_topic_that_is_not_there_is_a_sentence(mock_cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["decode", "messages", "decoded.nothing", "--kafka", mock_cluster]) == 69
    assert "has no topic decoded.nothing" in capsys.readouterr().err
