"""The exported configuration of a commercial JDBC driver as one of eventlog: what has a counterpart
is taken, and of everything else it is said what becomes of it.

An option is an element with its name (`<polling-interval>10</polling-interval>`, or with an
attribute `value`), a `<definition name="polling-interval">` with a `<value>`, or a `<gcv-ref>` to
one: wherever it stands in the file, but for the options of the Subscriber channel, some of which
are called alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote as quoted_in_url

from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.plural import count_words
from eventlog.init.first import quote_text
from eventlog.init.schema_mapping import policy_text, read_mapping
from eventlog.sql.dialect import dialects
from eventlog.xds.read import XmlElement, parse

POLICY: Final = "vault names"
"""What the policy is called that a schema mapping becomes."""

TRUE: Final = ("1", "yes", "true")
FALSE: Final = ("0", "no", "false")

ADDRESS: Final = ("server", "shim-auth-server", "DirXML-ShimAuthServer")
LOGIN: Final = ("user", "shim-auth-id", "DirXML-ShimAuthID")

NO_COUNTERPART: Final[Mapping[str, str]] = {
    "startup-option": "it is for triggerless publication: source.compare.restart",
    "include-table-filter": "name the tables in source.tables; `eventlog track` takes patterns such as app.*",
    "exclude-table-filter": "name the tables in source.tables; `eventlog track` takes patterns such as app.*",
    "connection-init": "set it in the URL, or as settings of the role in the database",
    "column-position-comparator": "only where columns are found by position: source.columns",
    "enable-meta-identifiers": "always on",
    "force-username-case": "the publisher's own user is recognised in upper and lower case",
    "state-dir": "the state is beside the log, in the database",
    **dict.fromkeys(
        (
            "disable-locking",
            "enable-locking",
            "lock-generator-class",
            "transaction-isolation-level",
            "use-manual-transactions",
            "use-single-connection",
        ),
        "rows are marked under the lock of the one publisher",
    ),
    **dict.fromkeys(
        (
            "current-timestamp-stmt",
            "left-outer-join-operator",
            "minimal-metadata",
            "preserve-sql-whitespace",
            "supports-schemas-in-metadata-retrieval",
            "time-translator-class",
        ),
        "eventlog knows its databases",
    ),
    **dict.fromkeys(
        ("connection-properties", "function-return-method", "handle-stmt-results", "jdbc-class", "reuse-statements"),
        "there is no Java here",
    ),
}
"""Options without a key of ours, and why."""


class DriverSettings(Struct, frozen=True, kw_only=True):
    """What the file says, in our words; `left` has a sentence for each option that is not taken."""

    url: str | None = None
    log: str | None = None
    schema: str | None = None
    tables: tuple[str, ...] = ()
    user: str | None = None
    publisher: Mapping[str, str] = {}
    """Keys of [publisher] with their values in TOML."""
    policy: str = ""
    """A schema mapping as a policy, in TOML."""
    left: tuple[str, ...] = ()


def read_driver(body: bytes, origin: str) -> DriverSettings:
    """Read an exported driver; raise DataError if malformed or an option's value is unknown."""
    root = parse(body, huge=True)
    options = _options(root)
    address, login = (_first(root, names) for names in (ADDRESS, LOGIN))
    if not options and address is None:
        raise DataError(
            f"{origin} is no configuration of a JDBC driver: it has no <publisher-options>, no <driver-options> and no address.",
            hint="Export the driver as XML, and give that file.",
        )
    left = [f"{name}: {NO_COUNTERPART[name]}" for name in options if name in NO_COUNTERPART]
    left.extend(
        f"{option}: its value is {name}, a global configuration value that this file lacks"
        for option, name in _unknown(root)
    )
    if options.get("publication-mode", "1") != "1":
        left.append("publication-mode 2: without triggers eventlog compares tables (source.kind = compare)")
    if _is_true(options, "disable", origin):
        left.append("disable: eventlog publishes while `eventlog run` runs; do not start it")
    url = None if address is None else _sqlalchemy_url(address, login)
    if address is not None and url is None:
        left.append(
            f"{_kind(address)}: eventlog has no such database, or the address has another form; give --database URL"
        )
    publisher = {
        key: value
        for name, (key, convert) in _PUBLISHER.items()
        if (value := convert(options[name], f"{origin}: {name}") if name in options else None) is not None
    }
    publisher.setdefault("time_syntax", "1")  # the driver's default, which its receivers expect
    filtered = options.get("sync-filter", "")
    if filtered == "empty":
        left.append("sync-filter empty: the driver published nothing; eventlog publishes what is in the log")
    schema = options.get("sync-schema") if filtered != "list" else None
    maps = list(root.iter("attr-name-map"))
    if len(maps) > 1:
        left.append(
            f"schema mapping: the file has {count_words(len(maps), 'mapping')}; `eventlog policy import` takes one alone"
        )
    return DriverSettings(
        url=url,
        log=_log(options, schema),
        schema=schema,
        tables=tuple(re.split(r"[\s;,]+", options["sync-tables"])) if _lists_tables(options) else (),
        user=login,
        publisher=publisher,
        policy=policy_text(POLICY, read_mapping(body, origin)) if len(maps) == 1 else "",
        left=tuple(left),
    )


def _options(root: XmlElement) -> dict[str, str]:
    """Map each option with a value by its name; the last one counts."""
    found: dict[str, str] = {}
    shared = _values(root)
    known = {*_PUBLISHER, *NO_COUNTERPART, *_OTHERS}
    for element in root.iter("*"):
        name, text = element.tag, _text(element)
        if name == "definition":
            name, text = element.get("name", ""), element.findtext("value")
        elif name == "gcv-ref":
            name, text = element.get("driver-param-name", ""), shared.get(element.get("name", ""))
        of_subscriber = next(element.iterancestors("subscriber-options"), None) is not None
        if name in known and text is not None and text.strip() and not of_subscriber:
            found[name] = _fill_in(text.strip(), shared)
    return found


def _unknown(root: XmlElement) -> list[tuple[str, str]]:
    """List options of ours that refer to a global configuration value which is not there."""
    shared = _values(root)
    known = {*_PUBLISHER, *_OTHERS}
    refs = [(one.get("driver-param-name", ""), one.get("name", "")) for one in root.iter("gcv-ref")]
    return [(option, name) for option, name in refs if option in known and name not in shared]


def _values(root: XmlElement) -> dict[str, str]:
    """Map the global configuration values by their names."""
    return {one.get("name", ""): (one.findtext("value") or "").strip() for one in root.iter("definition")}


def _fill_in(text: str, shared: Mapping[str, str]) -> str:
    """Put global configuration values in the place of their names, as in `~db.host~`."""
    return re.sub(r"~([^~\s]+)~", lambda found: shared.get(found[1], found[0]), text)


def _text(element: XmlElement) -> str | None:
    """Return what an element holds: exports have it in an attribute."""
    return element.text if element.text and element.text.strip() else element.get("value")


def _first(root: XmlElement, names: tuple[str, ...]) -> str | None:
    """Return the text of the first non-empty of these elements."""
    for name in names:
        for element in root.iter(name):
            # Behind the address of a Remote Loader.
            text = re.sub(r"^REMOTE\([^)]*\)", "", _fill_in((_text(element) or "").strip(), _values(root))).strip()
            if text:
                return text
    return None


def _sqlalchemy_url(address: str, login: str | None) -> str | None:
    """Write a URL with `${DB_PASSWORD}` in it; None for an unsupported database."""
    user = quoted_in_url(login or "publisher", safe="")
    for pattern, url in [pair for dialect in dialects() for pair in dialect.driver.jdbc_addresses]:
        if found := re.match(pattern, address):
            return found.expand(url).replace("://", f"://{user}:${{DB_PASSWORD}}@", 1)
    return None


def _log(options: Mapping[str, str], schema: str | None) -> str | None:
    """Name the log with its schema: without one it stands where the tables do."""
    log = options.get("log-table")
    return f"{schema}.{log}" if log and schema and "." not in log else log


def _kind(address: str) -> str:
    """Return the words before an address: the rest may be secret."""
    return ":".join(address.split(":")[:2])


def _lists_tables(options: Mapping[str, str]) -> bool:
    return options.get("sync-filter", "list") == "list" and "sync-tables" in options


def _is_true(options: Mapping[str, str], name: str, origin: str) -> bool:
    return name in options and _boolean(options[name], f"{origin}: {name}") == "true"


def _boolean(text: str, where: str) -> str:
    word = text.lower()
    if word in TRUE:
        return "true"
    if word in FALSE:
        return "false"
    raise DataError(f"{where} is {text!r}; write one of {', '.join((*TRUE, *FALSE))}.")


def _number(text: str, where: str) -> str:
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise DataError(f"{where} is {text!r}; write a whole number.")
    return str(int(text))


def _texts(separator: str) -> Callable[[str, str], str]:
    """Make the conversion of a list with such separators."""

    def convert(text: str, _where: str) -> str:
        parts = [part.strip() for part in text.split(separator)]
        return "[" + ", ".join(quote_text(part) for part in parts if part) + "]"

    return convert


_PUBLISHER: Final[Mapping[str, tuple[str, Callable[[str, str], str]]]] = {
    "polling-interval": ("polling_interval", _number),
    "time-of-day": ("time_of_day", _texts(",")),
    "post-poll-stmt": ("post_poll_statements", _texts(";")),
    "batch-size": ("batch_size", _number),
    "query-limit": ("query_limit", _number),
    "allow-loopback": ("allow_loopback", _boolean),
    "handle-future-events": ("handle_future_events", _boolean),
    "delete-from-log": ("delete_from_log", _boolean),
    "pub-heartbeat-interval": ("heartbeat_interval", _number),
    "time-syntax": ("time_syntax", _number),
    "enable-refs": ("enable_refs", _boolean),
}
"""Options with a key in [publisher], and how their value is written in TOML."""

_OTHERS: Final = ("disable", "publication-mode", "log-table", "sync-filter", "sync-schema", "sync-tables")
"""Options that are read one by one."""
