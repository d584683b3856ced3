"""What went wrong, in a sentence or two on standard error, and the exit code that says whose fault
it was.
"""

from __future__ import annotations

import errno
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any, Final

import click

from eventlog.core.errors import EX_USAGE, EventlogError, MachineError, UsageError, without_promise
from eventlog.core.packages import EXTRAS, missing
from eventlog.core.secrets import masked, shown, visible
from eventlog.core.suggest import nearest

INTERRUPTED: Final = 130
TERMINATED: Final = 143
"""What a shell shows of a program that SIGTERM ended."""

CLOSED_PIPE: Final = 141
"""What a shell shows of a program that SIGPIPE ended, as `git log | head` is."""

PASSING: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM))
"""What may be over when the command is given once more: somebody makes room."""


def misused(error: click.ClickException) -> int:
    """Says how a command was called wrongly, and where it stands how it is called."""
    context = getattr(error, "ctx", None)
    if isinstance(error, click.exceptions.NoArgsIsHelpError) or context is None:
        error.show()
        return EX_USAGE
    said = _in_plain_words(error)
    end = "" if said.endswith((".", "?")) else "."
    click.echo(f"eventlog: {shown(said)}{end} See `{context.command_path} --help`.", err=True)
    return EX_USAGE


def _in_plain_words(error: click.ClickException) -> str:
    """What click says, without its names of types; for one of several words, the one that was
    probably meant.
    """
    said = error.format_message().strip().replace("a valid integer range", "a whole number").rstrip(".")
    choices = getattr(getattr(getattr(error, "param", None), "type", None), "choices", ())
    written = re.search(r"'([^']+)' is not one of", said)
    near = nearest(written[1], map(str, choices)) if written else None
    return said if near is None else f"{said}. Did you mean {near!r}?"


def told(error: Exception, arguments: Sequence[str]) -> int:
    """Says what an error was, and gives back the exit code."""
    said, code = in_words(error, arguments)
    click.echo(f"eventlog: {said}", err=True)
    return code


def in_words(error: Exception, arguments: Sequence[str] = ()) -> tuple[str, int]:
    """What an error was, and its exit code; one that nobody foresaw is called a fault of
    eventlog.
    """
    known = error if isinstance(error, EventlogError) else _foreseen(error, arguments)
    if known is None:
        said = shown(f"{type(error).__name__}: {error}")
        return f"{said}\nThis is a fault of eventlog; --debug shows where it happened.", EventlogError.exit_code
    said = without_promise(str(known))  # a command that ends tries nothing again
    return said if said == str(known) else f"{said} Run it again once that is repaired.", known.exit_code


def traced(error: BaseException) -> str:
    """Where it happened, and what drivers and receivers have said there."""
    lines = "".join(traceback.format_exception(error)).split("\n")
    return "\n".join(visible(masked(line), lines=True) for line in lines)


def _foreseen(error: Exception, arguments: Sequence[str]) -> EventlogError | None:
    return _from_package(error) or _from_database(error) or _from_text(error, arguments) or _from_machine(error)


def _from_package(error: Exception) -> EventlogError | None:
    """What nobody asked for before it was needed, and comes with an extra."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    from eventlog.sql.dialect import drivers

    known = {**EXTRAS, **drivers()}
    return missing("This command", error.name, known) if (error.name or "").partition(".")[0] in known else None


def _from_database(error: Exception) -> EventlogError | None:
    """A database's error that nobody caught nearer to its cause; SQLAlchemy is loaded if it was
    raised at all.
    """
    loaded: Any = sys.modules.get("sqlalchemy.exc")
    if loaded is None or not isinstance(error, loaded.SQLAlchemyError):
        return None
    from eventlog.sql.connect import in_words as in_our_words

    return in_our_words(error, "The database does not answer as it should")


def _from_text(error: Exception, arguments: Sequence[str]) -> EventlogError | None:
    """A name on the command line whose bytes are no text can be opened, and neither stored nor
    compared.
    """
    odd = next((argument for argument in arguments if not _is_text(argument)), None)
    if odd is None or not isinstance(error, UnicodeEncodeError):
        return None
    return UsageError(f"{odd!a} holds bytes that are no text in UTF-8.", hint="Give it another name.")


def _is_text(argument: str) -> bool:
    return argument.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in argument)


def _from_machine(error: Exception) -> EventlogError | None:
    """What the operating system refused, where nobody nearer to it had a sentence for it."""
    if not isinstance(error, OSError) or error.strerror is None:
        return None
    where = f"{error.filename} cannot be used" if error.filename else "Something could not be read or written"
    hint = "Free some space and run it again." if error.errno in (errno.ENOSPC, errno.EDQUOT) else None
    return MachineError(f"{where}: {error.strerror}.", hint=hint, may_pass=error.errno in PASSING)
