"""What went wrong, in a sentence or two, and the exit code that says whose fault it was."""

from __future__ import annotations

import errno
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import click

from eventlog.core.errors import EX_USAGE, EventlogError, MachineError, UsageError, without_promise
from eventlog.core.packages import EXTRAS, missing
from eventlog.core.secrets import make_readable, mask_secrets, visible
from eventlog.core.suggest import nearest

INTERRUPTED: Final = 130
TERMINATED: Final = 143
"""What a shell shows of a program that SIGTERM ended."""

CLOSED_PIPE: Final = 141
"""What a shell shows of a program that SIGPIPE ended, as `git log | head` is."""

NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

PASSING: Final = NO_SPACE | {errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE}
"""What may be over when the command is given once more: somebody makes room."""

PRINTERS: Final = frozenset({"click.utils", "eventlog.cli.main"})
"""The modules that write to standard output."""

REMEDIES: Final[Mapping[int, str]] = {
    errno.ENOENT: "See that it is there, and its folder.",
    errno.EACCES: "See that this user may read and write there.",
    errno.EPERM: "See that this user may read and write there.",
    errno.EROFS: "Name a place where something can be written.",
    errno.EISDIR: "It is a folder: name a file.",
    errno.ENOTDIR: "A part of its path is a file: name another place.",
    **dict.fromkeys(NO_SPACE, "Free some space and run it again."),
}
"""What to do where the operating system refuses a file."""


def report_misuse(error: click.ClickException, arguments: Sequence[str]) -> int:
    """Says how a command was called wrongly, and where it stands how it is called."""
    context = getattr(error, "ctx", None)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return EX_USAGE
    command = " ".join(["eventlog", *takewhile(lambda word: word[:1] != "-", arguments)])
    if context is not None:
        command = context.command_path
    # Click calls things by the names of its types.
    message = error.format_message().strip().replace("\n\t", " ")  # as click lists choices
    message = message.replace("a valid integer range", "a whole number").rstrip(".")
    message = re.sub(r"is not in the range (-?\d+)<=x<=(-?\d+)", r"is not between \1 and \2", message)
    message = re.sub(r"is not in the range x>=(-?\d+)", r"is less than \1", message)
    message = re.sub(r"\.? \(Did you mean one of: (.+)\?\)$", r". Did you mean one of \1?", message)
    message = re.sub(r"'[\[{]([^\]}]+)[\]}]'", r"'\1'", message)
    # Of several words the one that was probably meant: click only lists all of them.
    choices = getattr(getattr(getattr(error, "param", None), "type", None), "choices", ())
    written = re.search(r"'([^']+)' is not one of", message)
    near = nearest(written[1], map(str, choices)) if written else None
    if near is not None:
        message += f". Did you mean {near!r}?"
    if not message.endswith((".", "?")):
        message += "."
    if context is not None and isinstance(error, click.NoSuchOption):
        options = {name for option in context.command.get_params(context) for name in option.opts}
        # One hyphen before a word: click reads its first letter alone.
        meant = next((f"-{word}" for word in arguments if f"-{word}" in options and word[:2] != "--"), None)
        message += f" Did you mean {meant}?" if meant else ""
    if isinstance(error, click.NoSuchOption) and command == "eventlog":
        message += " Options of a command come after it."
    click.echo(f"eventlog: {make_readable(message)} See `{command} --help`.", err=True)
    return EX_USAGE


def report_error(error: Exception, arguments: Sequence[str]) -> int:
    """Shows what an error was, and gives back the exit code."""
    message, code = in_words(error, arguments)
    click.echo(f"eventlog: {message}", err=True)
    return code


def in_words(error: Exception, arguments: Sequence[str] = ()) -> tuple[str, int]:
    """Explain an error and return its exit code; an unexpected one is a bug of eventlog."""
    known: EventlogError | None
    if isinstance(error, EventlogError):
        known = error
    else:
        known = _from_package(error) or _from_database(error) or _from_text(error, arguments)
        # Last: errors of drivers may be errors of the operating system as well.
        known = known or _from_machine(error)
    if known is None:
        sentence = make_readable(f"{type(error).__name__}: {error}")
        blame = f"This is a fault of {_name_culprit(error)}; --debug shows where it happened."
        return f"{sentence}\n{blame}", EventlogError.exit_code
    # Errors are written for a publisher, which tries again; a command that ends does not.
    sentence = without_promise(str(known))
    if sentence != str(known):
        sentence += " Run it again once that is repaired."
    return sentence, known.exit_code


def _name_culprit(error: Exception) -> str:
    """Name the plug-in whose code raised the error; eventlog for any other."""
    from eventlog.core.points import read_points

    plugins = {point.module.partition(".")[0]: point.package for point in read_points()}
    for frame, _ in reversed([*traceback.walk_tb(error.__traceback__)]):
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in ("eventlog", "eventlog_spark"):
            break
        if package in plugins:
            return f"the plug-in {plugins[package]}"
    return "eventlog"


def describe_trace(error: BaseException) -> str:
    """Format the traceback, with secrets masked."""
    lines = "".join(traceback.format_exception(error)).split("\n")
    return "\n".join(visible(mask_secrets(line), lines=True) for line in lines)


def _from_package(error: Exception) -> EventlogError | None:
    """Explain a missing package that an extra brings."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    from eventlog.sql.dialect import drivers

    known = {**EXTRAS, **drivers()}
    package = (error.name or "").partition(".")[0]
    if package not in known:
        return None
    return missing("This command", error.name, known)


def _from_database(error: Exception) -> EventlogError | None:
    """Explain a database's error nobody caught closer to its cause."""
    # SQLAlchemy has been loaded if it has raised it.
    loaded: Any = sys.modules.get("sqlalchemy.exc")
    if loaded is None or not isinstance(error, loaded.SQLAlchemyError):
        return None
    from eventlog.sql.access import in_words as in_our_words

    return in_our_words(error, "The database does not answer as it should")


def _from_text(error: Exception, arguments: Sequence[str]) -> EventlogError | None:
    """Explain a command-line name with bytes that are not text: it can be opened, but not stored."""
    if not isinstance(error, UnicodeEncodeError):
        return None
    # Python keeps such bytes as halves of characters, which no text of its own has.
    halves = re.compile("[\ud800-\udfff]")
    odd = next(filter(halves.search, arguments), None)
    if odd is None:
        return None
    message = f"{odd!a} holds bytes that are no text in UTF-8."
    return UsageError(message, hint="Give it another name.")


def _from_machine(error: Exception) -> EventlogError | None:
    """Explain an operating system's error nobody caught closer to its cause."""
    if not isinstance(error, OSError) or error.strerror is None:
        return None
    what = "Something could not be read or written"
    if error.filename:
        what = f"{error.filename} cannot be used"
    elif error.errno == errno.ENOENT and not _has_folder():
        return MachineError(
            "The folder of this shell is not there any more.", hint="Go to another one.", may_pass=False
        )
    elif _is_of_output(error):
        what = f"{_name_output()} cannot be written"
    hint, may_pass = REMEDIES.get(error.errno or 0), error.errno in PASSING
    return MachineError(f"{what}: {error.strerror}.", hint=hint, may_pass=may_pass)


def _has_folder() -> bool:
    """Return False if the folder where the command was given was removed meanwhile."""
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _is_of_output(error: OSError) -> bool:
    """Return True if what a command prints was not taken; such errors name no file."""
    last = next(reversed([*traceback.walk_tb(error.__traceback__)]), None)
    return last is not None and last[0].f_globals.get("__name__") in PRINTERS


def _name_output() -> str:
    """Name standard output, with the file to which a shell has sent it where the system knows it."""
    try:
        place = str(Path(f"/proc/self/fd/{sys.stdout.fileno()}").readlink())
    except (OSError, ValueError):
        place = ""
    # a pipe has a number there, and no path
    return f"Standard output ({place})" if place.startswith("/") else "Standard output"
