"""`eventlog validate`: XDS documents against the grammar."""

from __future__ import annotations

from pathlib import Path

import click

from eventlog.cli.show import say, show_json
from eventlog.cli.site import ReadFile, json_option
from eventlog.core.errors import EX_DATA, OK
from eventlog.core.plural import count_words


@click.command()
@click.argument("files", nargs=-1, required=True, type=ReadFile())
@json_option
def validate(files: tuple[Path, ...], as_json: bool) -> int:
    """Checks XDS documents; says what is wrong and in which line. `-` is standard input.

    Example: eventlog validate out/*.xml
    """
    from eventlog.xds.validate import validate as problems_of

    problems: list[dict[str, str | int | None]] = []
    for file in files:
        try:
            faults = problems_of(file.read_bytes())
        # One that cannot be read is reported among the others, and does not hide them.
        except OSError as error:
            message = f"the file cannot be read: {error.strerror}."
            problems.append({"file": str(file), "line": None, "message": message})
            continue
        problems += [{"file": str(file), "line": fault.line, "message": fault.message} for fault in faults]
    if as_json:
        show_json({"files": len(files), "problems": problems})
    else:
        for problem in problems:
            location = str(problem["file"])
            if problem["line"] is not None:
                location += f":{problem['line']}"
            say(f"{location}: {problem['message']}")
        click.echo(f"{count_words(len(files), 'document')}, {count_words(len(problems), 'problem')}.")
    if problems:
        return EX_DATA
    return OK
