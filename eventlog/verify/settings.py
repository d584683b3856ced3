"""What the publisher compares by itself beside publishing: how often, of which outputs, and within
which budget.
"""

from __future__ import annotations

from typing import Final

from eventlog.care.ages import seconds_of
from eventlog.compare.pace import Window, read_window
from eventlog.config.settings import LOG, Config
from eventlog.core.errors import ConfigError, UsageError
from eventlog.core.plugins import TablePlugin
from eventlog.core.secrets import SecretSettings
from eventlog.core.suggest import did_you_mean

LEAST_SECONDS: Final = 1
MOST_SECONDS: Final = 366 * 86_400
MOST_ROWS: Final = 1_000_000_000


class VerifyConfig(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The publisher compares each table with what each output holds of it as often as `every` says.

    Without it never.

    `outputs` and `tables` name some of them, by default all that can be compared. The other keys
    are options of `eventlog verify`, with the same names and meanings.
    """

    every: str = ""
    outputs: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    mirrors: bool = False
    into: str = ""
    suffix: str = "__mirror"
    rows_per_second: float = 0
    between: str = ""

    def __post_init__(self) -> None:
        seconds = seconds_of(self.every) if self.every else LEAST_SECONDS
        if seconds is None:
            example = "write a number with s, m, h, d or w, such as 6h, or nothing"
            raise ConfigError(f"verify.every is {self.every!r}; {example}.")
        if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
            raise ConfigError(f"verify.every is {self.every}; it must be between 1s and 366d.")
        if not 0 <= self.rows_per_second <= MOST_ROWS:
            limits = f"it must be between 0 and {MOST_ROWS}"
            raise ConfigError(f"verify.rows_per_second is {self.rows_per_second}; {limits}.")
        try:
            # So that a wrong time is reported when the file is read, not in the night.
            _ = self.window
        except UsageError as error:
            raise ConfigError(f"verify.between: {error.message}") from None

    @property
    def seconds(self) -> int:
        """Return seconds between proofs of a table; 0 for none."""
        if not self.every:
            return 0
        return seconds_of(self.every) or 0

    @property
    def window(self) -> Window | None:
        """Return when reading is allowed; None where it always is."""
        if not self.between:
            return None
        return read_window(self.between)


def settings_of(config: Config) -> VerifyConfig:
    """Return `[verify]` of a configuration."""
    settings: VerifyConfig = config.table("verify")
    return settings


def _check(config: Config) -> None:
    settings = settings_of(config)
    if settings.every and config.source.kind != LOG:
        raise ConfigError(
            f"verify.every needs a log of triggers, and source.kind is {config.source.kind}.",
            hint="Take it out; `eventlog verify` compares the tables of source.kind compare.",
        )
    known = [output.name for output in config.output if output.name]
    for name in settings.outputs:
        if name not in known:
            raise ConfigError(
                f"verify.outputs has {name!r}, and no output has that name.", hint=did_you_mean(name, known)
            )


TABLE: Final = TablePlugin(settings=VerifyConfig, check=_check)
