"""Named places at which a publisher dies, as if the machine had lost its power there: nothing is flushed, nothing closed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from importlib import import_module
from itertools import count
from typing import Any, Literal

from msgspec import Struct


class Fault(Struct, frozen=True, kw_only=True):
    """A function, and on which side of it death comes."""

    place: str
    side: Literal["before", "after"]


def arm(fault: Fault, times: int) -> None:
    """Lets this process die when it comes there for the so-manieth time."""
    owner, name = _owner(fault.place)
    real: Callable[..., Any] = getattr(owner, name)
    numbers = count(1)

    def armed(*args: Any, **kwargs: Any) -> Any:
        if fault.side == "after":
            found = real(*args, **kwargs)
            if next(numbers) >= times:
                die()
            return found
        if next(numbers) >= times:
            die()
        return real(*args, **kwargs)

    setattr(owner, name, armed)


def die() -> None:
    """Ends this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def _owner(place: str) -> tuple[Any, str]:
    module, _, path = place.partition(":")
    owner: Any = import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name
