"""The sink `scim`, and the format `scim` that it takes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, Literal

from eventlog.core.errors import ConfigError, ExpressionError
from eventlog.core.plugins import Finding, FormatOrder, FormatPlugin, SinkOrder, SinkPlugin
from eventlog.core.seams import Format, Sink
from eventlog.core.secrets import bare_address
from eventlog.sinks.http.address import reach
from eventlog.sinks.http.oauth import OauthSettings
from eventlog.sinks.scim.settings import ScimSettings

if TYPE_CHECKING:
    from eventlog.core.schema import Catalog, Table
    from eventlog.sinks.scim.client import ScimClient
    from eventlog.sinks.scim.provisioning import ProvisioningLog


class ScimOutput(
    OauthSettings,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="sink",
    tag="scim",
):
    """Users and groups at a server that speaks SCIM 2.0. `url` is where /Users and /Groups are.

    A group with all its members is one reply. With `output.scim.mode` = entra, `url` is a provisioning API endpoint,
    whose provisioning log is asked each `answers_every` seconds what became of users (0: never); a user of whom it says
    nothing ends W after `answers_within` seconds.
    """

    format: str = "scim"
    reply_limit: int = 67_108_864
    patch: Literal["auto", "always", "never"] = "auto"
    answers_every: float = 60.0
    answers_within: float = 86_400.0
    scim: ScimSettings | None = None

    @property
    def mapped(self) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
        """List the tables mapped to SCIM, each with its columns."""
        tables = {} if self.scim is None else self.scim.tables
        return tuple((name, tuple(table.columns)) for name, table in tables.items())

    def find_mapping_fault(self, table: Table, catalog: Catalog) -> str | None:
        """Find what SCIM cannot say of a table, such as a reference to a key of several columns."""
        from eventlog.sinks.scim.write import ScimFormat

        assert self.scim is not None  # else nothing is mapped
        try:
            ScimFormat(self.scim).make_table(table, catalog)
        except ExpressionError as error:
            return str(error)
        return None

    def __post_init__(self) -> None:
        """Refuse an address with a query, behind which no path can stand."""
        OauthSettings.__post_init__(self)
        if "?" in self.url or "#" in self.url:
            raise ConfigError("output.url has a query; it is the address before /Users.")
        if self.is_entra:
            from eventlog.sinks.scim.provisioning import split_endpoint

            split_endpoint(self.url)  # which refuses another address
        for name in ("answers_every", "answers_within"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"output.{name} is {getattr(self, name)}; it is a number of seconds, 0 or more.")

    @property
    def takes_all_values(self) -> bool:
        """Return True for bulkUpload, which knows no operations."""
        return self.is_entra

    @property
    def is_entra(self) -> bool:
        """Tell whether requests are those of Microsoft Entra's bulkUpload."""
        return self.scim is not None and self.scim.mode == "entra"


def _sink(order: SinkOrder) -> Sink:
    from eventlog.sinks.scim.client import ScimClient

    output: ScimOutput = order.output
    assert output.scim is not None  # its format was built before
    if output.is_entra:
        from eventlog.sinks.scim.upload import EntraSink

        client = ScimClient(output)
        return EntraSink(output, client, _provisioning_log(output, client) if output.answers_every else None)
    from eventlog.sinks.scim.receiver import ScimReceiver
    from eventlog.sinks.scim.sink import ScimSink

    return ScimSink(output, ScimClient(output), ScimReceiver(output.scim, output.patch, output.total_timeout))


def _provisioning_log(output: ScimOutput, client: ScimClient) -> ProvisioningLog:
    from eventlog.sinks.scim.provisioning import ProvisioningLog

    return ProvisioningLog(output, client, seconds=output.answers_every, patience=output.answers_within)


def _format(order: FormatOrder) -> Format:
    from eventlog.sinks.scim.write import ScimFormat

    return ScimFormat(order.settings)


def _show(written: Any) -> str:
    from eventlog.sinks.scim.requests import show_request

    return show_request(written.text)


def _findings(output: ScimOutput) -> Iterable[Finding]:
    if output.scim is None:
        raise ConfigError("The table [output.scim] is missing; it says which columns go where.")
    yield reach(output)
    if output.oauth_url:
        yield reach(output.token_endpoint())
    from eventlog.sinks.scim.client import ScimClient
    from eventlog.sinks.scim.server import read_abilities

    client = ScimClient(output)
    if output.is_entra:
        yield from _entra_findings(output, client)
        return
    try:
        abilities = read_abilities(client)
        # What a server can do it often tells to anybody; what it has, only to who may know it.
        for place in dict.fromkeys(table.place for table in output.scim.tables.values()):
            answer = client.ask("GET", place, query={"count": "1"})
            if not answer.is_taken:
                raise client.wrong_address(answer)
    finally:
        client.close()
    way = "PATCH" if abilities.patches and output.patch != "never" else "PUT"
    yield Finding(message=f"{bare_address(output.url)} speaks SCIM, and changes resources by {way}")


def _entra_findings(output: ScimOutput, client: ScimClient) -> Iterable[Finding]:
    if not output.answers_every:
        mend = "Without answers_every = 60 nobody learns here what Microsoft Entra refuses."
        yield Finding(message=f"{bare_address(output.url)} is not asked what became of users", mend=mend)
        return
    with closing(client), closing(_provisioning_log(output, client)) as log:
        log.ask_once()
    yield Finding(message=f"{bare_address(output.url)} has a provisioning log that may be read")


def _place(output: ScimOutput) -> str:
    return f"scim {bare_address(output.url)}"


SCIM: Final = SinkPlugin(
    settings=ScimOutput, build=_sink, place=_place, formats=("scim",), check=_findings, answers=True
)
SCIM_FORMAT: Final = FormatPlugin(build=_format, settings=ScimSettings, content="other", show=_show)
