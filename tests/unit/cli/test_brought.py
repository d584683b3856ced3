"""Commands and checks that other packages bring."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from eventlog.check.examine import check
from eventlog.cli.main import exit_code
from eventlog.config.settings import from_settings
from eventlog.core.errors import EX_CONFIG, EX_USAGE
from tests.support.plugins import Site, site

__all__ = ["site"]

TIDE = """
    import click

    from eventlog.plugins import CheckPlugin, ConfigError, Finding


    @click.command()
    @click.argument("place")
    def tide(place):
        \"\"\"Says how high the water stands. More is not known.\"\"\"
        if place == "mars":
            raise ConfigError("There is no water on mars.", hint="Try the moon.")
        click.echo(f"high at {place}")


    def findings(config):
        yield Finding(message="the moon is full")
        yield Finding(message=f"{len(config.output)} outputs stand in the water.", mend="Move them.")


    MOON = CheckPlugin(findings=findings)
    BROKEN = CheckPlugin(findings=lambda config: 1 / 0)
"""


@pytest.fixture(autouse=True)
def _installed(site: Site) -> None:
    points = {
        "commands": {
            "tide": "eventlog_tide:tide",
            "run": "eventlog_tide:tide",
            "odd": "eventlog_tide:MOON",
            "decode.tide": "eventlog_tide:tide",
        },
        "policies": {"wet": "eventlog_tide:findings", "dry": "eventlog_tide:nothing"},
        "checks": {"moon": "eventlog_tide:MOON", "sun": "eventlog_tide:BROKEN"},
    }
    site.install("eventlog-tide", points, TIDE)


def test_a_command_runs_and_its_errors_become_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["tide", "here", "--debug"]) == 0
    assert capsys.readouterr().out == "high at here\n"
    assert exit_code(["tide", "mars"]) == EX_CONFIG
    assert "There is no water on mars. Try the moon." in capsys.readouterr().err


def test_the_help_lists_it_behind_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["--help"]) == 0
    text = capsys.readouterr().out
    assert "tide  Says how high the water stands" in text.partition("Of other packages")[2]
    assert "odd" not in text.partition("Of other packages")[2]
    assert exit_code(["run", "--help"]) == 0, "a name of ours stays ours"
    assert "water" not in capsys.readouterr().out
    assert exit_code(["tode"]) == EX_USAGE
    assert "Did you mean tide?" in capsys.readouterr().err
    assert exit_code(["odd"]) == EX_CONFIG
    assert (
        "command odd of the package eventlog-tide 1.0 cannot be used: it is of the type CheckPlugin, and not Command"
        in capsys.readouterr().err
    )


def test_a_command_of_a_group_has_the_groups_name_before_a_dot(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["decode", "tide", "here"]) == 0
    assert capsys.readouterr().out == "high at here\n"
    assert exit_code(["decode", "--help"]) == 0
    listed = re.findall(r"^  (\w+)  ", capsys.readouterr().out.partition("Commands")[2], re.MULTILINE)
    assert listed == ["gbase", "linter", "messages", "tide"]
    assert exit_code(["decode.tide", "here"]) == EX_USAGE


def test_what_a_command_does_not_need_is_not_imported_for_it() -> None:
    """The core's commands look for no entry point, and none imports another's."""
    heavy = ("alembic", "pyspark", "confluent_kafka", "pyarrow", "starlette", "importlib.metadata")
    asked = "import sys; from eventlog.cli.main import exit_code; exit_code(sys.argv[1:]); print(*sys.modules)"
    for command, needless in (("run", heavy), ("convert", heavy[:-1])):
        done = subprocess.run(
            [sys.executable, "-c", asked, command, "--help"], capture_output=True, text=True, check=True
        )
        assert set(needless) & set(done.stdout.split()) == set(), command


def test_checks_are_points_and_one_that_fails_leaves_the_others(tmp_path: Path) -> None:
    settings = {"source": {"url": f"sqlite:///{tmp_path / 'a.db'}"}, "output": [{"sink": "stdout"}]}
    found = [
        (point.name, str(point.level), point.said) for point in check(lambda: from_settings(settings, {}, origin="x"))
    ]
    assert ("moon", "ok", "the moon is full") in found
    assert ("moon", "warning", "1 outputs stand in the water.") in found
    assert ("plug-ins", "ok", "command tide of the package eventlog-tide 1.0") in found
    assert ("plug-ins", "ok", "function of policies wet of the package eventlog-tide 1.0") in found
    [broken] = [said for name, level, said in found if name == "plug-ins" and " dry " in said]
    assert "cannot be loaded: AttributeError: module 'eventlog_tide' has no attribute 'nothing'" in broken
    assert [level for name, level, _ in found if name == "sun"] == ["failure"]
