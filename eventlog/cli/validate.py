"""`eventlog validate`: XDS documents against the grammar."""

from __future__ import annotations

from pathlib import Path

import click

from eventlog.cli.show import say, show_json
from eventlog.cli.site import ReadFile, json_option
from eventlog.core.errors import EX_DATA, OK
from eventlog.core.plural import counted


@click.command()
@click.argument("files", nargs=-1, required=True, type=ReadFile())
@json_option
def validate(files: tuple[Path, ...], as_json: bool) -> int:
    """Checks XDS documents; says what is wrong and in which line. `-` is standard input.

    Example: eventlog validate out/*.xml
    """
    problems = [problem for file in files for problem in _problems(file)]
    if as_json:
        show_json({"files": len(files), "problems": problems})
    else:
        for problem in problems:
            place = str(problem["file"])
            if problem["line"] is not None:
                place += f":{problem['line']}"
            say(f"{place}: {problem['message']}")
        click.echo(f"{counted(len(files), 'document')}, {counted(len(problems), 'problem')}.")
    if problems:
        return EX_DATA
    return OK


def _problems(file: Path) -> list[dict[str, str | int | None]]:
    """What is wrong with a file; one that cannot be read is told among the others and does not hide
    them.
    """
    from eventlog.xds.validate import validate as problems_of

    try:
        problems = problems_of(file.read_bytes())
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}."
        return [{"file": str(file), "line": None, "message": message}]
    return [{"file": str(file), "line": problem.line, "message": problem.message} for problem in problems]
