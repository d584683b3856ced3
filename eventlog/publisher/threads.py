"""A call in a thread of its own, beside the turn of an output."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def beside(name: str, call: Callable[[], T]) -> Future[T]:
    """Run the call in a thread; the future has its result or error."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  # raised by `result`
            future.set_exception(error)

    # A daemon: a target that never answers must not keep the process from ending.
    Thread(target=run, name=name, daemon=True).start()
    return future
