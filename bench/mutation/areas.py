"""What is mutated, and which tests judge it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path

from msgspec import Struct

from eventlog.core.errors import UsageError

QUICK = ("-p", "bench.mutation.profile", "--hypothesis-profile=mutants")
BRIEF = ("-k", "not linear", *QUICK)
"""Without the tests that measure, and those that look for hundreds of examples by themselves."""
ON_SQLITE = ("-k", "sqlite", *QUICK)
TRIGGERS = (
    "tests/conformance/test_dialect_triggers.py",
    "tests/conformance/test_dialect_replay.py",
    "tests/conformance/test_dialect_sqlite.py",
    "tests/conformance/test_dialect_keys.py",
    "tests/conformance/test_dialect_children.py",
    "tests/conformance/test_dialect_views.py",
    "tests/conformance/test_dialect_track.py",
)


class Area(Struct, frozen=True, kw_only=True):
    """Files, as patterns, and the tests of them, as patterns too; `options` are pytest's."""

    name: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    options: tuple[str, ...] = BRIEF

    @property
    def is_sql(self) -> bool:
        return self.files[0].endswith(".sql")


AREAS = (
    Area(
        name="rules",
        files=("eventlog/core/rules/*.py", "eventlog/convert/long_object.py", "eventlog/sources/stream/images.py"),
        tests=(
            "tests/unit/core/rules/test_[!g]*.py",
            "tests/unit/convert/test_long_object.py",
            "tests/unit/sources/stream/test_images.py",
            "tests/unit/policies/test_lookups.py",
            "tests/unit/sql/test_clocks.py",
            "tests/unit/test_golden.py",
        ),
    ),
    Area(
        name="table_key",
        files=("eventlog/core/tablekey.py",),
        tests=("tests/unit/core/test_tablekey.py", "tests/unit/core/rules/test_identity.py"),
    ),
    Area(
        name="XDS",
        files=("eventlog/xds/*.py",),
        tests=("tests/unit/xds/test_*.py", "tests/unit/test_on_value.py", "tests/unit/test_golden.py"),
    ),
    Area(
        name="change tables and messages",
        files=("eventlog/qlik/*.py", "eventlog/qlik/change_tables/*.py", "eventlog/qlik/messages/*.py"),
        tests=(
            "tests/unit/qlik/test_*.py",
            "tests/unit/qlik/change_tables/test_*.py",
            "tests/unit/qlik/messages/test_*.py",
            "tests/unit/test_on_value.py",
            "tests/unit/core/rules/test_refresh.py",
            "tests/unit/test_golden.py",
            "tests/unit/sinks/change_files/test_sink.py",
        ),
    ),
    Area(
        name="delivery",
        files=("eventlog/delivery/*.py", "eventlog/sources/stream/captured.py", "eventlog/sources/stream/packed.py"),
        tests=("tests/unit/delivery/test_*.py", "tests/unit/sources/stream/test_captured.py"),
    ),
    Area(
        name="marks",
        files=("eventlog/sources/marks.py",),
        tests=(
            "tests/unit/sources/test_marks.py",
            "tests/unit/sources/log/test_owed.py",
            "tests/unit/sources/log/test_lock_holder.py",
            "tests/conformance/test_source_log.py",
        ),
        options=("-k", "sqlite or unit", *QUICK),
    ),
    Area(
        name="triggers",
        files=("eventlog/capture/*.py", "eventlog/tracked/*.py"),
        tests=(
            "tests/unit/capture/test_golden_triggers.py",
            "tests/unit/capture/test_triggers.py",
            "tests/unit/capture/test_asked.py",
            "tests/unit/sql/test_bridge.py",
            "tests/unit/sql/test_dialect.py",
            "tests/unit/capture/test_cascades.py",
            "tests/unit/capture/test_follow.py",
            "tests/unit/sql/test_oracle.py",
            *TRIGGERS,
            "tests/conformance/test_dialect_asked.py",
            "tests/conformance/test_dialect_postgresql_ddl.py",
            "tests/integration/test_follow.py",
        ),
        options=("-k", "sqlite or unit", *QUICK),
    ),
    Area(name="triggers' SQL", files=("eventlog/databases/sqlite/triggers.sql",), tests=TRIGGERS, options=ON_SQLITE),
)


def area_of(path: str) -> Area:
    """The area that a file belongs to."""
    for area in AREAS:
        if any(fnmatch(path, pattern) for pattern in area.files):
            return area
    known = ", ".join(pattern for area in AREAS for pattern in area.files)
    raise UsageError(f"No tests are named for {path}.", hint=f"bench/mutation/areas.py names them for {known}.")


def files_of(patterns: Iterable[str]) -> list[str]:
    """The files that stand there, in the order of the patterns: the tests that fail soonest come first."""
    found = (path for pattern in patterns for path in sorted(Path().glob(pattern)) if path.is_file())
    return list(dict.fromkeys(path.as_posix() for path in found))


def chosen(paths: Sequence[str]) -> dict[Area, list[str]]:
    """The files to mutate by their area: those that are named, in folders too; all without a name."""
    found: dict[Area, list[str]] = {}
    if not paths:
        return {area: files_of(area.files) for area in AREAS}
    for path in paths:
        inside = [f"{path.rstrip('/')}/**/*.py", f"{path.rstrip('/')}/*.py"]
        for file in files_of(inside if Path(path).is_dir() else [path]) or [path]:
            found.setdefault(area_of(file), []).append(file)
    return found
