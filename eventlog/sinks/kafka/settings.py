"""Which Kafka, in what time, and who we are there. The keys of an output whose sink is kafka."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from eventlog.core.errors import ConfigError
from eventlog.core.outputs import OutputKeys

OURS: Final = frozenset(
    {
        "transactional.id",
        "enable.idempotence",
        "delivery.report.only.error",
        "acks",
        "max.in.flight.requests.per.connection",
    }
)
"""What options may not change: on it rests that messages are there once, and in order."""

TRANSACTION_LIMIT: Final = "transaction.timeout.ms"


class KafkaSettings(OutputKeys, frozen=True, kw_only=True):
    """Which Kafka and how.

    `topic` takes documents that are not messages. `transactional_id` is who this output is at the
    brokers: two at the same time may not have the same one, and after a restart it must be the
    former one. `marks_topic` keeps what was written last; the sink makes it where it may. `options`
    are librdkafka's own settings.
    """

    servers: str
    topic: str = ""
    transactional_id: str = "eventlog"
    marks_topic: str = "eventlog.marks"
    create_topics: bool = False
    partitions: int = 1
    replication: int = -1
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    max_message_bytes: int = 1_000_000
    timeout: float = 30.0
    tls: bool = False
    verify: bool = True
    ca_file: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    client_key_password: str | None = None
    sasl: Literal["none", "plain", "scram-sha-256", "scram-sha-512"] = "none"
    user: str | None = None
    password: str | None = None
    options: dict[str, str | int | float | bool] = msgspec.field(default_factory=dict)
    registry: str = ""
    registry_user: str | None = None
    registry_password: str | None = None
    registry_authorization: str | None = None
    registry_ca_file: str | None = None
    registry_timeout: float = 10.0

    def __post_init__(self) -> None:
        """Refuses what no connection could be made with; a secret never gets into the message."""
        for name in ("servers", "transactional_id", "marks_topic"):
            if not getattr(self, name).strip():
                raise ConfigError(f"output.{name} is empty; it must hold something.")
        if "http://" in self.servers or "https://" in self.servers:
            raise ConfigError("output.servers is an address of the web; brokers are written as HOST:PORT,HOST:PORT.")
        if re.search(r";|[^,\s]\s+[^,\s]", self.servers):
            raise ConfigError("output.servers has brokers without a comma between them; write HOST:PORT,HOST:PORT.")
        for name in ("timeout", "registry_timeout", "max_message_bytes", "partitions"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"output.{name} is {getattr(self, name)}; it must be more than 0.")
        has_login = self.user is not None or self.password is not None
        if (self.sasl != "none") != has_login:
            problem = "output.sasl, output.user and output.password belong together"
            raise ConfigError(f"{problem}; one of them is missing.")
        if not self.tls and (self.ca_file or self.client_certificate):
            raise ConfigError("output.ca_file and output.client_certificate need output.tls = true.")
        if self.registry_ca_file and self.registry.lower().startswith("http:"):
            problem = "output.registry_ca_file is about TLS, and output.registry begins with http://"
            raise ConfigError(f"{problem}.", hint="Write https://…, or leave registry_ca_file out.")
        if self.client_key and not self.client_certificate:
            raise ConfigError("output.client_key needs output.client_certificate beside it.")
        for name in sorted(OURS.intersection(self.options)):
            problem = f"output.options sets {name}, on which rests that messages are there once"
            raise ConfigError(f"{problem}; leave it out.")
        limit = self.options.get(TRANSACTION_LIMIT)
        if limit is not None and not str(limit).isdigit():
            # Without its value, for an option may hold a secret.
            raise ConfigError(f"output.options sets {TRANSACTION_LIMIT}; it must be a whole number of milliseconds.")


def client_options(settings: KafkaSettings) -> dict[str, Any]:
    """Return the options of every librdkafka client; raise ConfigError for a missing file."""
    for name in ("ca_file", "client_certificate", "client_key"):
        file = getattr(settings, name)
        if file is not None and not Path(file).is_file():
            raise ConfigError(f"output.{name} names {file}, and there is no such file; correct the path.")
    protocol = "ssl" if settings.tls else "plaintext"
    if settings.sasl != "none":
        protocol = f"sasl_{protocol}"
    options: dict[str, Any] = {
        "bootstrap.servers": settings.servers,
        "client.id": settings.transactional_id,
        "security.protocol": protocol,
        # Nothing on stderr; what goes wrong comes as errors.
        "log_level": 2,
        "logger": _journal(),
    }
    if settings.sasl != "none":
        options |= {"sasl.mechanism": settings.sasl.upper(), "sasl.username": settings.user or ""}
        options["sasl.password"] = settings.password or ""
    if settings.tls:
        options["enable.ssl.certificate.verification"] = settings.verify
        if not settings.verify:
            # Else librdkafka still asks whether the name fits, and nothing is trusted.
            options["ssl.endpoint.identification.algorithm"] = "none"
        files = {
            "ssl.ca.location": settings.ca_file,
            "ssl.certificate.location": settings.client_certificate,
            # One PEM file may hold both.
            "ssl.key.location": settings.client_key or settings.client_certificate,
            "ssl.key.password": settings.client_key_password,
        }
        options |= {name: value for name, value in files.items() if value}
    return options


def _journal() -> logging.Logger:
    """Return librdkafka's logger: silent unless a handler is set, for failures come as errors."""
    logger = logging.getLogger("eventlog.kafka")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    return logger


def transaction_seconds(settings: KafkaSettings) -> float:
    """Return how long brokers keep a transaction open.

    They refuse a limit shorter than a commit may last.
    """
    given = settings.options.get(TRANSACTION_LIMIT)
    return max(settings.timeout, 10.0) if given is None else int(given) / 1000


def producer_options(settings: KafkaSettings) -> dict[str, Any]:
    """Return the producer's options: no duplicates, in order, one row always in one partition."""
    milliseconds = int(settings.timeout * 1000)
    return {
        **client_options(settings),
        "compression.type": settings.compression,
        "message.max.bytes": settings.max_message_bytes,
        TRANSACTION_LIMIT: int(transaction_seconds(settings) * 1000),
        "message.timeout.ms": milliseconds,
        "queue.buffering.max.kbytes": 262_144,
        "partitioner": "murmur2_random",  # as Java's producers have it
        # The operator's options come before ours, so that they cannot change those.
        **settings.options,
        "transactional.id": settings.transactional_id,
        "enable.idempotence": True,
        "delivery.report.only.error": True,
    }
