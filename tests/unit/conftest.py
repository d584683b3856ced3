"""Tests of this level need nothing: one that starts a program or a worker process fails, but for a small Python of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

Popen = subprocess.Popen
HARMLESS = (sys.executable, "fc-list")  # matplotlib asks the latter which fonts there are


@pytest.fixture(scope="module", autouse=True)
def nothing_is_started() -> Iterator[None]:
    """Refuses servers, a Java, a shell and worker processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseProcess, "start", _refused)
        patch.setattr(subprocess, "Popen", _OwnPython)
        yield


class _OwnPython(Popen[Any]):
    """A process that is this Python again, or as small."""

    def __init__(self, args: Any, *rest: Any, **more: Any) -> None:
        if isinstance(args, str) or args[0] not in HARMLESS:
            _refused(args)
        super().__init__(args, *rest, **more)


def _refused(what: object, *_: object) -> None:
    pytest.fail(f"tests/unit starts no servers, programs and worker processes, and this is one: {what}")
