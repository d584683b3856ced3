"""Looks at the PySpark that is there, and has its workers run in the Python that runs here, where nobody says
otherwise.

PySpark takes `python3` of the PATH for them. In a virtual environment that is not activated that is
another one, without eventlog.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, Final

from eventlog.core.errors import ConfigError

VARIABLE: Final = "PYSPARK_PYTHON"


OLDEST: Final = (4, 1)
"""The first PySpark whose data sources take filters."""
TOO_NEW: Final = (5, 0)


def refuse_other_spark() -> None:
    """Refuse an unsupported PySpark; without any only its users fail."""
    version = _spark_version()
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if version and not OLDEST <= numbers < TOO_NEW:
        raise ConfigError(
            f"PySpark {version} is installed, and eventlog_spark works with 4.1 and later ones before 5.",
            hint="Take a platform with such a Spark; or pip install 'pyspark>=4.1,<5'.",
        )


def _spark_version() -> str:
    """Return the version of the PySpark that is there, without importing it; empty if there is none.

    spark-submit and platforms put it on the path, where pip knows nothing of it.
    """
    loaded = sys.modules.get("pyspark")
    if loaded is not None:
        return str(getattr(loaded, "__version__", ""))
    package = find_spec("pyspark")
    found = package and PathFinder.find_spec("version", package.submodule_search_locations)
    if not found or found.loader is None:
        return ""
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return str(module.__version__)


def name_this_python() -> None:
    """Set PYSPARK_PYTHON, unless it is set, spark-submit has chosen, or a session runs already."""
    if VARIABLE in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ or _session_runs():
        return
    os.environ[VARIABLE] = sys.executable


def is_named_by_somebody() -> bool:
    """Return True if PYSPARK_PYTHON names a Python other than this one."""
    return os.environ.get(VARIABLE) not in (None, sys.executable)


def _session_runs() -> bool:
    context: Any = sys.modules.get("pyspark.core.context")
    return context is not None and context.SparkContext._active_spark_context is not None  # noqa: SLF001  # `SparkContext.getOrCreate` would start one
