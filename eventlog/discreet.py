"""Settings that may hold secrets, and do not tell them when somebody prints them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct


class Discreet(Struct, frozen=True, kw_only=True):
    """Shows of its texts only that they are there: each may have come from a secret, or hold one as a URL does."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(_shown(self))})"


def _shown(settings: Struct) -> Iterator[str]:
    """What was set, as far as it can be no secret."""
    for field in msgspec.structs.fields(settings):
        value: Any = getattr(settings, field.name)
        if value != field.default:
            yield f"{field.name}={value!r}" if isinstance(value, bool | int | float | None) else f"{field.name}=…"
