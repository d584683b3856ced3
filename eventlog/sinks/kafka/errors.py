"""Kafka's errors in words: what happened, where, whether waiting mends it, and what does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from eventlog.core.errors import SinkError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException

TOO_LARGE: Final = "MSG_SIZE_TOO_LARGE"
FENCED: Final = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_ID_MAPPING"})
_AWAY = frozenset({"_ALL_BROKERS_DOWN", "_TRANSPORT", "_RESOLVE", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_MSG_TIMED_OUT"})
_LOGIN: Final = "Check output.sasl, output.user and output.password."
_REFUSED = {
    "_AUTHENTICATION": _LOGIN,
    "SASL_AUTHENTICATION_FAILED": _LOGIN,
    "_SSL": "Check output.tls, output.ca_file, and that the broker's certificate is for the host in output.servers.",
    "TOPIC_AUTHORIZATION_FAILED": "Give the user the right to write to the topic and to describe it.",
    "CLUSTER_AUTHORIZATION_FAILED": "Give the user the right of idempotent writing.",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "Give the user the right to write and describe output.transactional_id.",
}
_OURS: Final = "Check output.client_certificate and output.client_key: that is how a broker answers a certificate."
_ALERT: Final = "SSL alert number"
"""In the text of a broken connection: the broker itself has ended the handshake."""
_SHAKING: Final = "in state SSL_HANDSHAKE"
"""In the text of a connection that broke before it was one: what listens there may not speak TLS at
all.
"""
TRIED_AGAIN: Final = "It is tried again."
_CLOSED: Final = "It is tried again; if brokers close connections at once, check output.tls and output.sasl."


def error_of(exception: KafkaException) -> KafkaError:
    error: KafkaError = exception.args[0]
    return error


def louder(former: KafkaError | None, error: KafkaError) -> KafkaError:
    """Return the error that explains more; of equal ones the later."""
    if former is None or _weight(error) >= _weight(former):
        return error
    return former


def in_words(error: KafkaError, servers: str, earlier: KafkaError | None = None) -> SinkError:
    """Convert the error to a sentence; `earlier` is an error heard before, often the cause."""
    hint = TRIED_AGAIN
    if earlier is not None and error.name() in _AWAY:
        # That nobody answers is the last of what happened; what the client said before is the
        # cause.
        if earlier.name() == "_ALL_BROKERS_DOWN" or _SHAKING in str(earlier.str()):
            hint = _CLOSED
        error = earlier
    name, words = error.name(), str(error.str()).rstrip(".")
    refused = _refusal(error)
    if name in FENCED:
        # Whoever has the lock of the log takes the output over again, and finds out there whether
        # it is still its own.
        message = f"Somebody else has taken over output.transactional_id at Kafka {servers}."
        return SinkError(message, hint="If that is another log's publisher, give each output its own.")
    if refused is not None:
        return SinkError(f"Kafka at {servers} refuses us: {words}.", hint=refused, may_pass=False)
    if name in _AWAY:
        return SinkError(f"Kafka at {servers} does not answer: {words}.", hint=hint)
    # What only the transaction's end mends is no lasting error: it is aborted and written again.
    may_pass = bool(error.retriable() or error.txn_requires_abort() or not error.fatal())
    if not may_pass:
        hint = "Correct that and start again."
    message = f"Kafka at {servers} does not take messages: {words} ({name})."
    return SinkError(message, hint=hint, may_pass=may_pass)


def _refusal(error: KafkaError) -> str | None:
    """Return a hint if a broker refused for good, else None."""
    if _ALERT in str(error.str()):
        return _OURS
    return _REFUSED.get(error.name())


def _weight(error: KafkaError) -> int:
    # A refusal explains a silence, a broken connection does too, and that nobody is there says
    # nothing new.
    if _refusal(error) is not None:
        return 2
    return int(error.name() in ("_TRANSPORT", "_RESOLVE"))
