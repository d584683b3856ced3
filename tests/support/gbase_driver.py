"""The emulator of GBase 8s as a driver, so that sessions can be tried without a server."""

from __future__ import annotations

from tests.support.gbase_server import GBaseServer


class EmulatedDriver:
    """Calls the emulator where a driver of a site would call its server."""

    def __init__(self, emulator: GBaseServer) -> None:
        self._emulator = emulator

    def call(self, function: str, *arguments: object) -> int:
        return int(getattr(self._emulator, function.rpartition("cdc_")[2])(*arguments))

    def read(self, session: int, most: int) -> bytes:
        return self._emulator.read(session, most)

    def captures(self, table: str, but: int) -> int:
        return self._emulator.captures(table, but)

    def close(self) -> None:
        return None
