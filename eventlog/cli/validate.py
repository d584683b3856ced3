"""`eventlog validate`: XDS documents against the grammar."""

from __future__ import annotations

from pathlib import Path

import click

from eventlog.cli.show import show_json
from eventlog.cli.site import json_option
from eventlog.errors import EX_DATA, OK, DataError


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@json_option
def validate(files: tuple[Path, ...], as_json: bool) -> int:
    """Checks XDS documents; says what is wrong and in which line.

    Example: eventlog validate out/*.xml
    """
    from eventlog.xds.validate import validate as problems_of

    found = []
    for file in files:
        try:
            problems = problems_of(file.read_bytes())
        except OSError as error:
            raise DataError(f"{file} cannot be read: {error.strerror}.") from None
        found += [{"file": str(file), "line": problem.line, "message": problem.message} for problem in problems]
    if as_json:
        show_json({"files": len(files), "problems": found})
    else:
        for problem in found:
            click.echo(f"{problem['file']}:{problem['line']}: {problem['message']}")
        click.echo(f"{len(files)} document(s), {len(found)} problem(s).")
    return EX_DATA if found else OK
