"""What goes wrong in a lake, in our words: a store's own answer may hold what is secret, so little
of it is shown.
"""

from __future__ import annotations

import os
import random
import re
import time

from eventlog.core.backoff import Backoff
from eventlog.core.errors import SinkError, shorten
from eventlog.core.secrets import mask_secrets
from eventlog.durable_files import PERMANENT
from eventlog.sinks.store.objects import REASONS, reason

COMMIT_TRIES = 10
"""How often a commit is tried anew because others changed the table meanwhile."""

# So libraries in Rust end what the operating system has said.
_number = re.compile(r"\(os error (\d+)\)").search
# So object_store, which delta-rs uses, begins what a store has said.
_of_store = re.compile(r"Generic (?:S3|GCS|MicrosoftAzure) error|HTTP error|<Code>").search
# So Arrow's file systems say it.
_amazon = re.compile(r"AWS Error ([A-Z_]+)(?: \(HTTP status (\d{3})\))?").search
_unknown_to_arrow = re.compile(r"ExceptionName: (\w+)").search
_colours = re.compile("\x1b\\[[0-9;]*m")
_WAIT = Backoff(first=0.05, longest=2.0)


def message_of(error: BaseException) -> str:
    """Return the library's message in one line, with secrets masked."""
    text = " ".join(_colours.sub("", str(error)).replace("↳", " ").split())
    return shorten(mask_secrets(text), 300).rstrip(".")


def trouble(table: str, error: Exception, done: str = "written") -> SinkError:
    """Explain why a table could not be written or read, and the next step."""
    text = str(error)
    # The number of the system's error, which delta-rs has in its words only.
    in_words = _number(text)
    number = int(in_words[1]) if in_words else 0
    if isinstance(error, OSError) and error.errno:
        number = error.errno
    if _amazon(text) or _of_store(text) or ("://" in table and isinstance(error, OSError)):
        why, mend = reason(_as_answered(error))
        return SinkError(f"{table} {why}.", hint=f"{mend}; nothing is lost.", may_pass=True)
    if number:
        may_pass = number not in PERMANENT
        hint = "It is tried again." if may_pass else "Correct that and start again; nothing is lost."
        return SinkError(
            f"The table {table} cannot be {done}: {os.strerror(number)}.",
            hint=hint,
            may_pass=may_pass,
        )
    return SinkError(
        f"The table {table} cannot be {done}: {message_of(error)}.",
        hint="It is tried again; nothing is lost.",
    )


def _as_answered(error: Exception) -> Exception:
    """Convert Arrow's description of a store's error to the store's own form, for `reason`."""
    text = str(error)
    amazon, unknown = _amazon(text), _unknown_to_arrow(text)
    if amazon is None:
        return error
    code = unknown[1] if unknown else amazon[1].title().replace("_", "")
    if code in REASONS:
        return OSError(f"<Code>{code}</Code>")
    # An answer to HEAD has no more than a status.
    return OSError(f"status code: {amazon[2]}") if amazon[2] else error


def pause(attempt: int) -> None:
    """Waits before a commit is tried again, each time longer."""
    # Spreads those who wait, and keeps nothing secret.
    time.sleep(_WAIT.delay(attempt + 1, random.random()))  # noqa: S311  # see above


def writes_elsewhere(table: str) -> SinkError:
    """Say that other writers win every commit."""
    return SinkError(
        f"Others write to the table {table} without a pause.",
        hint="It is tried again; nothing is lost.",
    )
