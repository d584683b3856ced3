"""Settings that may hold secrets, and do not tell them when somebody prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from eventlog.core.secrets import decoded, is_secret, named_secrets

OPTIONS: Final = frozenset(("", "connect", "options"))
"""Settings whose keys are a driver's own settings."""

_password = re.compile(r"://[^/@:?#]*:([^@]+)@").search


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


def secrets_in(settings: object, name: str = "") -> Iterator[str]:
    """Every secret in a configuration, however deep, for whoever must keep it out of what people read."""
    if isinstance(settings, Struct):
        for field in msgspec.structs.fields(settings):
            yield from secrets_in(getattr(settings, field.name), field.name)
    elif isinstance(settings, Mapping):
        for key, value in settings.items():
            # Elsewhere keys are the names of tables, and a table may be called anything.
            yield from secrets_in(value, str(key) if name in OPTIONS else "")
    elif isinstance(settings, tuple | list):
        for value in settings:
            yield from secrets_in(value, name)
    elif isinstance(settings, str) and settings:
        if is_secret(name):
            yield settings
        elif "://" in settings or "=" in settings:
            yield from _of_text(settings)


def _of_text(text: str) -> Iterator[str]:
    """Passwords in a URL and behind their names, as they are written and as they are meant."""
    match = _password(text)
    found = [match[1]] if match else []
    for begin, end in named_secrets(text):
        found += (text[begin:end], text[begin:end].partition(";")[0])
    for secret in found:
        yield from dict.fromkeys((secret, decoded(secret)))
