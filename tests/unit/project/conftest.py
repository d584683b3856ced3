"""What tests of the sources keep is given up behind the last of them."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.support.sources import forget


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Whichever it is in this process."""
    answer = yield
    if nextitem is None or nextitem.path.parent != item.path.parent:
        forget()
    return answer
