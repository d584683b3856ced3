"""A secret is hidden as a word, never as a part of what we say; one that cannot be is known as weak."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eventlog
from eventlog.check.examine import check
from eventlog.check.point import PointLevel
from eventlog.config.settings import from_settings
from eventlog.config.weak_secrets import MEND, WEAK, find_secrets
from eventlog.core.secrets import mask_secrets
from eventlog.daemon.logging import journal

SOURCES = "".join(file.read_text() for file in Path(eventlog.__file__).parent.rglob("*.py"))
ACTIONS = sorted(set(re.findall(r"journal\.(?:info|warning|error)\(\s*\"(\w+)\"", SOURCES)))


def configured(secret: str) -> dict[str, object]:
    return {
        "source": {"url": "postgresql+psycopg://pub@db/app", "linter": {"connect": {"password": secret}}},
        "output": [
            {"sink": "http", "url": "https://receiver.example/in", "authorization": f"Bearer {secret}x-{secret}"}
        ],
    }


@pytest.mark.parametrize("secret", ["pub", "1", "published", "Output", "output_paused", "eventlog", "rows"])
def test_a_short_secret_and_a_word_of_ours_is_weak(secret: str) -> None:
    config = from_settings(configured(secret), {}, origin="the test")
    known = find_secrets(config)
    assert known.weak == ("source.linter.connect.password",)
    assert secret not in known.words
    (point,) = [one for one in check(lambda: config) if "source.linter.connect.password" in one.said]
    told = (point.level, point.said, point.mend)
    assert told == (PointLevel.WARNING, f"source.linter.connect.password: {WEAK}", MEND), "which tells no letter of it"


@pytest.mark.parametrize("secret", ["lished", "p4ss", "tr0ub4dor&3", "correct horse", "gehe im"])
def test_others_are_hidden_wherever_they_stand_as_words(secret: str) -> None:
    known = find_secrets(from_settings(configured(secret), {}, origin="the test"))
    assert known.weak == ()
    assert set(known.words) == {secret, f"Bearer {secret}x-{secret}", f"{secret}x-{secret}"}


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "no login with {}, says the server",
        '"{}"',
        "b'{}'",
        "user%3A{}%40host",
        "first\\n{}\\nlast",
        "[{}]",
        "pub:{}@",
        "({})",
        "\n{}\n",
    ],
)
@pytest.mark.parametrize("secret", ["geheim4", "!geheim", "geheim!", "gehe.im", "ge heim"])
def test_a_secret_is_found_as_a_word(text: str, secret: str) -> None:
    found = mask_secrets(text.format(secret), ["geheim", secret])
    assert "heim" not in found
    assert "***" in found


@pytest.mark.parametrize("action", ACTIONS)
def test_no_secret_changes_what_an_alert_looks_for(action: str) -> None:
    stream = io.StringIO()
    journal("json", stream=stream, secrets=[action, *(action[:end] for end in range(1, len(action)))]).info(action)
    record = json.loads(stream.getvalue())
    assert (record["action"], record["level"]) == (action, "info")


@given(st.text("pubished_", min_size=1), st.sampled_from(["published", "published_rows", "republish", "e_publ"]))
def test_a_part_of_a_word_is_never_hidden(secret: str, word: str) -> None:
    found = mask_secrets(f"{word} 7", [secret])
    assert found == ("*** 7" if secret == word else f"{word} 7")
