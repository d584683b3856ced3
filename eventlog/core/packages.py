"""What eventlog does without until somebody asks for it: packages that come with an extra, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from eventlog.core.errors import ConfigError

EXTRAS: Final[Mapping[str, str]] = {
    "pyarrow": "parquet",
    "pandas": "spark",
    "pyspark": "spark",
    "confluent_kafka": "kafka",
    "fastavro": "kafka",
    "itsdangerous": "web",
    "jinja2": "web",
    "starlette": "web",
    "uvicorn": "web",
    "jpype": "gbase",
}
"""Which extra brings a module; drivers of databases stand in the databases' rooms."""


def is_there(module: str) -> bool:
    """Whether the module can be imported; nothing is loaded to know it."""
    return find_spec(module) is not None


def require(what: str, *modules: str) -> None:
    """ConfigError where one of the modules is missing that `what` needs."""
    for module in modules:
        if not is_there(module):
            raise missing(what, module)


def missing(what: str, module: str | None, further: Mapping[str, str] = EXTRAS) -> ConfigError:
    """The error that says which package `what` needs, and how it comes here; `further` are other extras by their modules."""
    extra = {**EXTRAS, **further}.get((module or "").partition(".")[0])
    hint = f"Install it: pip install 'eventlog[{extra}]'." if extra else "Install it where eventlog runs."
    return ConfigError(f"{what} needs the package {module}, which is not installed.", hint=hint)
