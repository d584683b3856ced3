"""Which secrets of a configuration can be hidden wherever they are written, and which only where
secrets stand.

A short password, or one that is a word of ours, would hide parts of what we say: an action that an
alert waits for, the name of a setting. It would also tell its letters by what is missing. Such a
secret is hidden in URLs, in headers and behind its name alone, and whoever set it is warned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from eventlog.core.secrets import format_path, secret_paths

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from eventlog.config.settings import Config

MIN_SECRET_CHARACTERS: Final = 4
"""A shorter text stands in too many others by chance."""


WEAK: Final = (
    "The secret is short, or a word that eventlog's own messages contain:"
    " it is hidden in URLs, in headers and behind its name, and not elsewhere."
)
"""The warning about a weak secret; it tells neither how long it is nor which word."""
MEND: Final = "Choose a longer one, not a word."


class KnownSecrets(Struct, frozen=True, kw_only=True):
    """Secrets to be hidden wherever they stand as words, and where those are that are too weak."""

    words: tuple[str, ...]
    weak: tuple[str, ...]


def find_secrets(config: Config) -> KnownSecrets:
    """List the secrets of a configuration, also without the scheme of a header, and decoded."""
    secrets = [secret for name, section in config.sections() for secret in secret_paths(section, (name,))]
    ours = _ours(dict.fromkeys(secret for _, secret in secrets))
    weak = {secret for _, secret in secrets if len(secret) < MIN_SECRET_CHARACTERS or secret in ours}
    return KnownSecrets(
        words=tuple(dict.fromkeys(secret for _, secret in secrets if secret not in weak)),
        weak=tuple(dict.fromkeys(format_path(path) for path, secret in secrets if secret in weak)),
    )


def _ours(secrets: Iterable[str]) -> set[str]:
    """Find those that are whole words of our own source, and so of our messages."""
    texts = _sources()
    ours = set()
    for secret in secrets:
        word = secret.lower()
        # Not \b, which finds no edge beside a sign that is no letter.
        as_word = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        # Few texts have it at all, and `in` is ten times as fast.
        if any(word in text and as_word.search(text) for text in texts):
            ours.add(secret)
    return ours


@cache
def _sources() -> tuple[str, ...]:
    """Read the texts of our modules in lower case; none where a package comes without them."""
    return tuple(text.lower() for text in _texts_below(files("eventlog")))


def _texts_below(folder: Traversable) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _texts_below(entry)
        elif entry.name.endswith(".py"):
            yield entry.read_text(encoding="utf-8")
