"""Files that commands read, standard input as `-`, and what a shell completes: files and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from eventlog.core.errors import DataError

STDIN: Final = Path("/dev/stdin")


class ReadFile(click.Path):
    """The path of a file to read; `-` is standard input."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, allow_dash=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return STDIN if value == "-" else super().convert(value, param, ctx)


def content_of(file: Path) -> bytes:
    """What is in a file; DataError where it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise DataError(
            f"{file} cannot be read: {error.strerror}.", hint="Name a file that this user may read."
        ) from None


def complete_files(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, where an argument may also be something else."""
    return [CompletionItem(incomplete, type="file")]


def complete_tables(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The tables of the database that the line names, or the configuration; none where it does not answer."""
    from sqlalchemy import inspect

    from eventlog.cli.site import Site

    given = {name: context.params.get(name) for name in ("database", "config", "log")}
    try:
        site = Site(**given, without_file=bool(context.params.get("without_file")))
        schema, bare = site.schema, incomplete
        if "." in incomplete:
            schema, _, bare = incomplete.partition(".")
        engine = site.engine()
        found = inspect(engine).get_table_names(schema=schema)
        own = site.wanted_names.own
        engine.dispose()
    except Exception:  # noqa: BLE001  # whoever presses a key is shown names, or nothing
        return []
    before = incomplete[: len(incomplete) - len(bare)]
    return [CompletionItem(before + name) for name in sorted(found) if name.startswith(bare) and name not in own]


def complete_outputs(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of the outputs in the configuration that counts; none where it cannot be read."""
    from eventlog.cli.site import Site
    from eventlog.config.build import name_of

    file = context.params.get("config")
    # A command without --no-config takes no file that nobody names.
    without_file = file is None and bool(context.params.get("without_file", True))
    try:
        outputs = Site(None, file, None, without_file=without_file).config.output
    except Exception:  # noqa: BLE001  # as above
        return []
    return [CompletionItem(name) for name in map(name_of, outputs) if name.startswith(incomplete)]
