"""The publisher as a service: opened again when it cannot be opened yet, and anew when the configuration is reread."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event as Flag
from typing import Final

from msgspec import Struct
from structlog.stdlib import BoundLogger

from eventlog.config.settings import Config
from eventlog.core.errors import EX_DATA, EX_UNAVAILABLE, OK, ConfigError, InstallError, MachineError
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.publisher import Publisher
from eventlog.daemon.scheduling import Failures
from eventlog.daemon.signals import Systemd
from eventlog.delivery.report import Report


class Ending(Struct, frozen=True, kw_only=True):
    """How a publisher ends: the exit code of its process, and why, where it was not asked to."""

    exit_code: int = OK
    error: str | None = None

    def enter(self, journal: BoundLogger) -> int:
        """Write the one record at the end of every process's log."""
        if self.error is None:
            journal.info("stopped", exit_code=self.exit_code)
        else:
            journal.error("fatal", error=self.error, exit_code=self.exit_code)
        return self.exit_code


STOPPED: Final = Ending()
"""It was asked to end, or had nothing more to do."""


class Service:
    """Runs a publisher until somebody asks for the end, or until it may not go on.

    `read` gives its configuration, and `adopt` gets each one that it works with.
    """

    def __init__(
        self,
        read: Callable[[], Config],
        journal: BoundLogger,
        vitals: PublisherHealth,
        systemd: Systemd | None = None,
        adopt: Callable[[Config], None] = lambda _config: None,
    ) -> None:
        self._read = read
        self._adopt = adopt
        self._journal = journal
        self._vitals = vitals
        self._systemd = systemd or Systemd({})
        self._asked = Flag()
        self._ending = Flag()
        self._former: Config | None = None
        self._publisher: Publisher | None = None
        self.connects = False
        """A publisher is being opened, which may wait for a server that does not answer; no batch is in hand."""

    def stop(self) -> None:
        """Asks for the end; the batch in hand is finished first."""
        self._ending.set()
        self.reload()

    def reload(self) -> None:
        """Asks for another look at the configuration, after the batch in hand."""
        self._asked.set()
        if self._publisher is not None:
            self._publisher.stop()

    def run(self, config: Config) -> Ending:
        """Publish; return how it ended. Errors not waited out are raised."""
        failures = Failures()
        while not self._ending.is_set():
            try:
                ended = self._publish(config)
                failures.count = 0
            except (ConfigError, InstallError, MachineError) as error:
                if isinstance(error, MachineError) and error.may_pass:
                    self._asked.wait(failures.report(error, self._vitals, self._journal))
                    if self._asked.is_set() and not self._ending.is_set():
                        config = self._reread(config)
                    continue
                # At the start there is nothing to go back to.
                if self._former is None:
                    raise
                self._journal.error("reload_failed", error=str(error))
                # What was read cannot be worked with.
                config, self._former = self._former, None
                continue
            if ended is not None:
                return ended
            config = config if self._ending.is_set() else self._reread(config)
        return STOPPED

    def _publish(self, config: Config) -> Ending | None:
        """Publish until somebody asks for something, or a cycle says it was the last."""
        self.connects = True
        try:
            opened = Publisher(config, journal=self._journal, vitals=self._vitals)
        finally:
            self.connects = False
        with opened as publisher:
            self._publisher = publisher
            self._adopt(config)
            # Somebody may have asked while there was no publisher yet that could be stopped.
            if self._asked.is_set():
                publisher.stop()
            self._journal.info("started", post=publisher.post.name, at=publisher.post.address)
            self._systemd.ready()
            for report in publisher.rounds():
                # A cycle has ended well with the new configuration: nobody goes back any more.
                self._former = None
                if publisher.is_over(report):
                    self._systemd.stopping()
                    return ending_of(report)
            if self._ending.is_set():
                self._systemd.stopping()
        return None

    def _reread(self, config: Config) -> Config:
        self._systemd.reloading()
        # Before it reads: who asks from now on may mean what is not read any more.
        self._asked.clear()
        try:
            new = self._read()
        except ConfigError as error:
            self._journal.error("reload_failed", error=str(error))
            return config
        self._journal.info("reloaded")
        self._former = config
        return new


def ending_of(report: Report) -> Ending:
    """Choose how a publisher ends after its last cycle."""
    if report.fatal:
        return Ending(exit_code=EX_UNAVAILABLE, error="A receiver answered fatal: nothing more may be sent to it.")
    if report.errors or report.ended is not None:
        return Ending(exit_code=EX_DATA, error="Rows ended as errors, and publisher.on_error is halt.")
    return STOPPED
