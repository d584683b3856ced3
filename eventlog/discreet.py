"""Settings that may hold secrets, and do not tell them when somebody prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

SECRET: Final = frozenset(
    ("authorization", "client_key_password", "password", "registry_authorization", "registry_password", "token")
)
"""Settings that are secrets by their names; a URL holds one where it has a password."""


_password = re.compile(r"://[^/@:?#]*:([^/@?#]+)@").search
_codes = re.compile(r"%([0-9A-Fa-f]{2})")


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
            yield from secrets_in(value, str(key))
    elif isinstance(settings, tuple | list):
        for value in settings:
            yield from secrets_in(value, name)
    elif isinstance(settings, str) and settings:
        if name in SECRET or "password" in name:
            yield settings
        elif "://" in settings:
            yield from _of_url(settings)


def _of_url(url: str) -> Iterator[str]:
    """A URL's password, as it is written and as it is meant."""
    match = _password(url)
    if match:
        yield from dict.fromkeys((match[1], _decoded(match[1])))


def _decoded(text: str) -> str:
    """The text with its percent signs resolved."""
    codes = _codes.sub(lambda match: bytes.fromhex(match[1]).decode("latin-1"), text)
    return codes.encode("latin-1", "replace").decode("utf-8", "replace")
