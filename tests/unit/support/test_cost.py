"""What the tests of cost see: a call whose cost is quadratic, and never the machine's own stutter."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support import cost


@pytest.mark.parametrize(
    "power, linear",
    [pytest.param(1, True, id="linear"), pytest.param(1.2, True, id="n_log_n"), (1.6, False), (2, False)],
)
def test_what_is_linear_is_told_from_what_is_not_on_a_machine_that_stutters(
    power: float, linear: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third call takes five times as long as it would alone."""
    stutter = _stuttering()

    def seconds(call: Callable[[], object]) -> float:
        return float(float(str(call())) ** power * next(stutter))

    monkeypatch.setattr(cost, "seconds", seconds)
    assert cost.is_linear(lambda size: lambda: size, 1000) is linear


def _stuttering() -> Iterator[float]:
    while True:
        yield from (5, 1, 1)
