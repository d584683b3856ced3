"""Packages that come with an extra, and the sentence that says so where one is missing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from eventlog.core.errors import ConfigError
from eventlog.version import DISTRIBUTION, STREAMS_TOOLS, VERSION

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
    "cel_expr_python": "policies",
    "cryptography": "policies",
    "opentelemetry": "otel",
    "obstore": "store",
    "boto3": "store",
    "deltalake": "lake",
    "pyiceberg": "lake",
}
"""Which extra brings a module; drivers of databases stand in the databases' rooms."""

SPARK: Final = ("eventlog_spark", "pyspark", "pandas")
"""What work on Spark needs. The first is of a wheel of its own, for platforms that bring the others."""


def is_there(module: str) -> bool:
    """Return True if the module can be imported; load only the packages around it to find out."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package around it is missing
        return False


def require(what: str, *modules: str) -> None:
    """Raise ConfigError if `what` lacks one of these modules."""
    for module in modules:
        if not is_there(module):
            raise missing(what, module)


def require_spark() -> None:
    """Raise ConfigError if something is missing for Spark; call it before importing any of it."""
    require("The engine spark (the other one is local)", *SPARK)


def installing(extra: str) -> str:
    """Write the command installing an extra, right however eventlog was installed."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        requirements = [text.partition(";") for text in requires(DISTRIBUTION) or ()]
    except PackageNotFoundError:  # it runs from its folder
        requirements = []
    # Builders write the marker with either kind of quotes.
    wanted = f"extra == '{extra}'"
    names = [f"'{name.strip()}'" for name, _, marker in requirements if wanted in marker.replace('"', "'")]
    if names:
        return " ".join(["pip install", *names])
    return f"pip install '.[{extra}]' in a clone of eventlog"


def missing(what: str, module: str | None, further: Mapping[str, str] = EXTRAS) -> ConfigError:
    """Make the error for a missing module, with the remedy; `further` are other extras by module."""
    package = (module or "").partition(".")[0]
    extra = {**EXTRAS, **further}.get(package)
    hint = "Install it where eventlog runs."
    if package == SPARK[0]:
        hint = f"Install the wheel eventlog-spark {VERSION}; in a clone of eventlog: pip install '.[spark]' ./spark."
    elif extra:
        hint = f"Install it: {installing(extra)}."
    return ConfigError(f"{what} needs the package {module}, which is not installed.", hint=hint)


def missing_tools(what: str) -> ConfigError:
    """Make the error for something that only the wheel of tools for streams has."""
    hint = f"Install the wheel {STREAMS_TOOLS} {VERSION}; in a clone of eventlog: pip install ./streams_tools."
    return ConfigError(f"{what} comes with the package {STREAMS_TOOLS}, which is not installed.", hint=hint)
