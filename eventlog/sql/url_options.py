"""Options behind `?` in a database URL: one that the driver does not know is named before anything
connects.

A driver says of it in its own way that it cannot connect, or Python that an argument is wrong;
SQLAlchemy ignores some.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

from eventlog.core.errors import ConfigError
from eventlog.core.suggest import nearest
from eventlog.sql.dialect import Dialect

if TYPE_CHECKING:
    from sqlalchemy.engine import URL
    from sqlalchemy.engine import Dialect as Connector


def refuse_unknown(url: URL, dialect: Dialect) -> None:
    """Raise ConfigError for an unknown option of the driver or an unreadable value; show no value."""
    driver = url.get_driver_name()
    kind: Any = url.get_dialect()
    # Some options SQLAlchemy takes for itself and hands on others, which only the driver knows.
    module = kind.import_dbapi()
    connector = kind(dbapi=module)
    known, takes_others = _parameters(module.connect)
    given: Mapping[str, Any] = url.query
    # libpq names its options itself; its module's `connect` takes whatever comes.
    if dialect.driver.url_options is not None and dialect.driver.module in (None, driver):
        known |= dialect.driver.url_options(url.query)
    elif takes_others:
        return
    else:
        given = _pass_options(url, connector)
    for name in url.query:
        if name in given and name not in known:
            problem = f"The database URL has an option that the driver {driver} does not know"
            if "@" in "".join(map(str, chain(*url.query.items()))):
                hint = "It may be a piece of the password: write @ there as %40, / as %2F and ? as %3F."
                raise ConfigError(f"{problem}.", hint=hint)
            near = nearest(name, known)
            hint = "Correct its name, or leave it out."
            if near:
                hint = f"Did you mean {near}?"
            raise ConfigError(f"{problem}: {name}.", hint=hint)
    _pass_options(url, connector)


def _parameters(connect: Callable[..., Any]) -> tuple[set[str], bool]:
    """List a driver's parameters, and say if there may be others: a module in C does not tell them."""
    try:
        parameters = inspect.signature(connect).parameters
    except ValueError:
        return set(), True
    kinds = {parameter.kind for parameter in parameters.values()}
    return {*parameters}, inspect.Parameter.VAR_KEYWORD in kinds


def _pass_options(url: URL, connector: Connector) -> Mapping[str, Any]:
    """Return the options for the driver; SQLAlchemy keeps some for itself."""
    try:
        return connector.create_connect_args(url)[1]
    except (TypeError, ValueError):
        at_fault = "an option"
    for name in url.query:
        # The one without which the others can be read is at fault.
        with suppress(TypeError, ValueError):
            connector.create_connect_args(url.difference_update_query([name]))
            at_fault = name
            break
    problem = f"The database URL has a value that cannot be read: that of {at_fault}."
    raise ConfigError(problem, hint="Correct it.")
