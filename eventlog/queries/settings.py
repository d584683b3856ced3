"""Who may query, and how much an answer has: the keys of `[query]`."""

from __future__ import annotations

from typing import Final

from eventlog.config.settings import Config, within
from eventlog.core.errors import ConfigError
from eventlog.core.plugins import TablePlugin
from eventlog.core.secrets import SecretSettings

TOKEN_CHARACTERS: Final = 16
"""Characters of a token that nobody finds by trying."""


class QueryConfig(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may query: the receiver that has the `token`, as long as there is one.

    Answers have what the `output` of this name publishes: by its policies, and nothing else. An
    answer has `most_rows` objects and `most_bytes` bytes at most; `slots` are worked on at once.
    """

    token: str | None = None
    output: str = ""
    most_rows: int = 100
    most_bytes: int = 8_000_000
    slots: int = 4

    def __post_init__(self) -> None:
        # Headers of HTTP carry nothing but ASCII for certain.
        if self.token is not None and (len(self.token) < TOKEN_CHARACTERS or not self.token.isascii()):
            raise ConfigError(
                f"query.token takes {TOKEN_CHARACTERS} ASCII characters or more; `openssl rand -hex 32` makes one."
            )
        within("query.most_rows", self.most_rows, 1, 10_000)
        within("query.most_bytes", self.most_bytes, 10_000, 1_000_000_000)
        within("query.slots", self.slots, 1, 64)


def settings_of(config: Config) -> QueryConfig:
    """Return `[query]` of a configuration."""
    settings: QueryConfig = config.table("query")
    return settings


def _check(config: Config) -> None:
    from eventlog.config.build import name_of

    settings = settings_of(config)
    names = [name_of(output) for output in config.output]
    if settings.output and settings.output not in names:
        raise ConfigError(f"query.output is {settings.output!r}; no output is called so, and it takes the name of one.")
    if settings.token is not None and not settings.output and len(names) > 1:
        raise ConfigError("query.output is missing; it takes the name of the output whose policies hold for answers.")


TABLE: Final = TablePlugin(settings=QueryConfig, check=_check)
