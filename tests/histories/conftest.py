"""What all tests of histories share: the receiver, and the project's modules on the stage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.histories.receiving import Receiver
from tests.histories.staging import staged
from tests.histories.targets import Http


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    """A receiver that answers; while it does, what the project does with threads and clocks is the
    stage's.
    """
    with Receiver().serving() as serving, staged():
        Http.receiver = serving
        yield serving
