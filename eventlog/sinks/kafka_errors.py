"""Kafka's errors in words: what happened, where, whether waiting mends it, and what does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from eventlog.errors import SinkError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException

TOO_LARGE: Final = "MSG_SIZE_TOO_LARGE"
_FENCED = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_ID_MAPPING"})
_AWAY = frozenset({"_ALL_BROKERS_DOWN", "_TRANSPORT", "_RESOLVE", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_MSG_TIMED_OUT"})
_REFUSED = {
    "_AUTHENTICATION": "Check output.sasl, output.user and output.password.",
    "SASL_AUTHENTICATION_FAILED": "Check output.sasl, output.user and output.password.",
    "_SSL": "Check output.tls, output.ca_file and the broker's certificate.",
    "TOPIC_AUTHORIZATION_FAILED": "Give the user the right to write to the topic and to describe it.",
    "CLUSTER_AUTHORIZATION_FAILED": "Give the user the right of idempotent writing.",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "Give the user the right to write and describe output.transactional_id.",
}


def error_of(exception: KafkaException) -> KafkaError:
    """The error in an exception."""
    found: KafkaError = exception.args[0]
    return found


def in_words(error: KafkaError, servers: str, earlier: KafkaError | None = None) -> SinkError:
    """The error as a sentence; `earlier` is what the client said by the way, which often is the cause."""
    if earlier is not None and error.name() in _AWAY and earlier.name() in _REFUSED:
        error = earlier
    name, said = error.name(), str(error.str()).rstrip(".")
    if name in _FENCED:
        message = f"Another publisher writes to Kafka at {servers} with the same output.transactional_id."
        return SinkError(message, hint="End it, or give each output its own.", may_pass=False)
    if name in _REFUSED:
        return SinkError(f"Kafka at {servers} refuses us: {said}.", hint=_REFUSED[name], may_pass=False)
    if name in _AWAY:
        return SinkError(f"Kafka at {servers} does not answer: {said}.", hint="It is tried again.")
    may_pass = bool(error.retriable() or error.txn_requires_abort() or not error.fatal())
    hint = "It is tried again." if may_pass else "Mend that and start again."
    return SinkError(f"Kafka at {servers} does not take messages: {said} ({name}).", hint=hint, may_pass=may_pass)
