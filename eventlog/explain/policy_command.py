"""`eventlog policy test` and `policy import`: policies are tried, or made of a schema mapping."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from msgspec.structs import asdict

from eventlog.cli.show import show_json_line, show_sentence, show_text
from eventlog.cli.site import Site, content_of, json_option, site_options
from eventlog.core.errors import UsageError

if TYPE_CHECKING:
    from eventlog.core.schema import Catalog
    from eventlog.explain.policies import PolicyResult

SAID: Final = {"told": "published", "filtered": "left out", "refused": "refused"}
"""What becomes of a change at an output, in the words of the other commands."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--schema",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Tables as JSON, without a database.",
)
@json_option
@site_options
def test(site: Site, file: Path, schema: Path | None, as_json: bool) -> None:
    """Runs the policies of all outputs on sample changes and shows each step with before and after.

    FILE holds a JSON object in each line: {"table": "usr", "key": "idu=1", "op": "modify", "old":
    {…}, "new": {…}, "beside": {…}}. `beside` is what the row has in other attributes.

    Example: eventlog policy test samples.jsonl --config eventlog.toml --schema schema.json
    """
    from eventlog.config.build import policies_of
    from eventlog.explain.policies import read_samples, results

    if not policies_of(site.config):
        message = f"{file} cannot be tried: no output of the configuration has a policy."
        shared = "under [[policy.steps]] with `policies` in the output"
        raise UsageError(message, hint=f"Write steps under [[output.steps]], or {shared}.")
    catalog = _catalog(site, schema)
    for change in read_samples(file, catalog):
        # A sample stands where its line does.
        line = change.positions[0][0]
        for result in results(site.config, catalog, [change]):
            if as_json:
                show_json_line({"line": line, **asdict(result)})
            else:
                show_result(result, f"Line {line}, ")


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--name",
    metavar="NAME",
    default="schema-mapping",
    show_default=True,
    help="The policy's name.",
)
def import_mapping(file: Path, name: str) -> None:
    """Prints a schema mapping of the identity engine as a policy for the configuration.

    FILE is XML with an <attr-name-map>. The application's names become the vault's.

    Example: eventlog policy import mapping.xml >> eventlog.toml
    """
    from eventlog.init.schema_mapping import policy_text, read_mapping

    show_text(policy_text(name, read_mapping(content_of(file), str(file))).rstrip("\n"))


def show_result(result: PolicyResult, before: str = "") -> None:
    show_sentence(f"{before}output {result.output}: {SAID.get(result.outcome, result.outcome)}.")
    for step in result.steps:
        show_sentence(f"  step {step.step}", indent=4)
        if step.note is not None:
            show_sentence(f"    {step.note}", indent=6)
            continue
        for name in dict.fromkeys((*step.before, *step.after)):
            was = step.before.get(name, "(not published)")
            now = step.after.get(name, "(not published)")
            # Without a name it is the object itself: its table and key.
            show_sentence(f"    {name or 'object'}: {was}  =>  {now}", indent=6)


def _catalog(site: Site, schema: Path | None) -> Catalog:
    from eventlog.core.schema_file import catalog_from_json

    if schema is None:
        from eventlog.config.build import catalog_of

        engine = site.engine()
        return catalog_of(engine, site.names(engine), site.config)
    return catalog_from_json(content_of(schema), origin=str(schema))
