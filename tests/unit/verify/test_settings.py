"""`[verify]`: what the publisher compares by itself."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.compare.pace import Window
from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import ConfigError
from eventlog.verify.settings import settings_of


def read(verify: dict[str, Any], **more: Any) -> Config:
    return from_settings({"verify": verify, **more}, {}, origin="x.toml")


@pytest.mark.parametrize("every, seconds", [("", 0), ("45s", 45), ("90m", 5400), ("6h", 21_600), ("1d", 86_400)])
def test_a_time_has_a_unit(every: str, seconds: int) -> None:
    assert settings_of(read({"every": every})).seconds == seconds


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"every": "6"}, "write a number with s, m, h, d or w"),
        ({"every": "0s"}, "between 1s and 366d"),
        ({"every": "53w"}, "between 1s and 366d"),
        ({"rows_per_second": -1}, "verify.rows_per_second is -1.0"),
        ({"between": "22"}, "verify.between: '22' is no time window"),
        ({"outputs": ["lak"]}, "no output has that name. Did you mean lake?"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match="verify") as refused:
        read(wrong, output=[{"name": "lake", "sink": "stdout"}])
    assert said in str(refused.value)


def test_it_needs_a_log() -> None:
    with pytest.raises(ConfigError, match="needs a log of triggers"):
        read({"every": "6h"}, source={"kind": "compare", "url": "sqlite:///a.db"})


def test_the_window_is_read() -> None:
    assert settings_of(read({"between": "22:00-05:00"})).window == Window(22 * 60, 5 * 60)
    assert settings_of(read({})).window is None
