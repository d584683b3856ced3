"""Secrets of a configuration: `"${NAME}"` stands for a variable of the environment, `"${file:PATH}"`
for a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from eventlog.core.errors import ConfigError

NAMED_SECRET: Final = re.compile(r"\$\{(file:)?([^}]+)\}")
"""What stands for a secret: whether a file has it, and the name of that or of a variable."""

_login = re.compile(r"(?<=://)[^/?#\s]*@")
_query = re.compile(r"(?<=\?)[^#\s]*")


def with_secrets(value: Any, environment: Mapping[str, str]) -> Any:
    """Fill in the secrets of a value, also inside of lists and tables."""
    if isinstance(value, str):
        return _with_secrets_in_text(value, environment)
    if isinstance(value, Mapping):
        return {key: with_secrets(inner, environment) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_secrets(inner, environment) for inner in value]
    return value


def _with_secrets_in_text(text: str, environment: Mapping[str, str]) -> str:
    """Fill in the secrets of a text."""
    # The name of a secret, which is a path perhaps, has signs of a URL as well: so the URL is read
    # without the names.
    bare = NAMED_SECRET.sub(lambda match: "x" * len(match[0]), text)
    if "${" in bare:
        raise ConfigError("A ${ in the configuration is not closed.", hint="A variable is written as ${NAME}.")
    quoted: list[tuple[int, int]] = []
    if "://" in bare:
        quoted = [part.span() for pattern in (_login, _query) for part in pattern.finditer(bare)]

    def put_in(match: re.Match[str]) -> str:
        secret, offset = _secret_value(match, environment), match.start()
        # In the login and the query of a URL an @ or a / means something else, so there secrets are
        # quoted.
        if not any(begin <= offset < end for begin, end in quoted):
            return secret
        # Where the name of a login stands there may be a name and a password.
        if bare[:offset].endswith("://"):
            return quote(secret, safe=":")
        return quote(secret, safe="")

    return NAMED_SECRET.sub(put_in, text)


def _secret_value(match: re.Match[str], environment: Mapping[str, str]) -> str:
    from_file, name = match.groups()
    if from_file:
        try:
            return Path(name).read_text(encoding="utf-8").strip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no UTF-8 text"
            message = f"The secret file {name} cannot be read: {why}."
            raise ConfigError(message, hint="It must be a text that this user may read.") from None
    if name not in environment:
        raise ConfigError(
            f"The configuration names ${{{name}}}, and the environment has no {name}.",
            hint="Set it, or write ${file:PATH}.",
        )
    return environment[name]
