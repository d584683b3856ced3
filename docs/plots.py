"""A hook of mkdocs: draws what pages show, which is not kept in git, puts results into the page about performance, and the schema of configurations beside theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from bench.plots import draw_all
from bench.readme import kept
from bench.report import RESULTS, Report
from docs.grammars import pictures

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

PAGE: Final = "explanation/performance.md"
HERE: Final = "<!-- figures -->"
FOLDER: Final = "explanation/plots"
GRAMMARS: Final = "reference/grammar"
ROOT: Final = Path(__file__).parents[1]
FILE: Final = re.compile(r"^\[`(?P<path>[\w/.-]+)`\]\((?:\.\./)+(?P=path)\)$", re.MULTILINE)
"""A line that only links to a file of the repository."""
LANGUAGES: Final = {".py": "python", ".toml": "toml", ".service": "ini"}
SCHEMA: Final = Path(__file__).parents[1] / "eventlog" / "config" / "eventlog.schema.json"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Plots of results and pictures of grammars, as if they lay among the pages."""
    from mkdocs.structure.files import File

    with TemporaryDirectory() as folder:
        for plot in draw_all(Path(folder)):
            files.append(File.generated(config, f"{FOLDER}/{plot.name}", content=plot.read_text(encoding="utf-8")))
    schema = SCHEMA.read_text(encoding="utf-8")
    files.append(File.generated(config, f"reference/{SCHEMA.name}", content=schema))
    for name, picture in pictures().items():
        files.append(File.generated(config, f"{GRAMMARS}/{name}", content=picture))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Puts figures into their page, and files in the place of lines that only link to them, as a clone shows them."""
    if page.file.src_uri == PAGE:
        markdown = markdown.replace(HERE, "\n".join(figures(RESULTS)))
    return FILE.sub(show_file, markdown)


def show_file(link: re.Match[str]) -> str:
    """Writes a file of the repository as a block."""
    path = ROOT / link["path"]
    return f'``` {{ .{LANGUAGES[path.suffix]} title="{path.name}" }}\n{path.read_text(encoding="utf-8").rstrip()}\n```'


def figures(folder: Path) -> Iterator[str]:
    """Every benchmark that has a result: what was asked, promised and measured, and the plot."""
    for report in kept(folder):
        yield f"\n### {report.name}\n"
        yield f"{_sentence(report.question)}\n"
        yield from _targets(report)
        yield f"![{report.name}](plots/{report.name}.svg)\n"
        yield f"{report.note} {report.day}, {report.machine}.\n"


def _targets(report: Report) -> Iterator[str]:
    if report.targets:
        yield "| promised | measured | |\n| --- | --- | --- |"
        for target in report.targets:
            yield f"| {target.promise} | {target.measured} | {'reached' if target.reached else '**not reached**'} |"
        yield ""


def _sentence(question: str) -> str:
    return question[:1].upper() + question[1:]
