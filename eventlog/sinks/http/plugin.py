"""The sink `http`: XDS documents to an address that answers what becomes of each change."""

from __future__ import annotations

from typing import Final, Literal

from eventlog.core.outputs import Places
from eventlog.core.plugins import SinkOrder, SinkPlugin
from eventlog.core.seams import Sink
from eventlog.core.secrets import bare_address
from eventlog.sinks.http.address import HttpSettings, reach


class HttpOutput(
    HttpSettings,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="sink",
    tag="http",
):
    """Documents POSTed to an address, whose answers say what becomes of the rows."""

    format: Literal["xds"] = "xds"

    @property
    def places(self) -> Places:
        """Name the output's places: addresses below its `url`."""
        return "address", "an address", ()


def _http_sink(order: SinkOrder) -> Sink:
    from eventlog.sinks.http.sink import HttpSink

    return HttpSink(order.output)


HTTP: Final = SinkPlugin(
    settings=HttpOutput,
    build=_http_sink,
    # Behind ? and # there may be a secret.
    place=lambda output: f"http {bare_address(output.url)}",
    formats=("xds",),
    check=lambda output: [reach(output)],
    answers=True,
)
