"""The benchmarks there are, and which of them somebody means."""

from __future__ import annotations

from collections.abc import Sequence

NAMES = (
    "startup",
    "tablekey",
    "rules",
    "growth.rules",
    "growth.publish",
    "growth.shapes",
    "growth.log",
    "growth.capture",
    "growth.rowback",
    "growth.tables",
    "growth.convert",
    "growth.verify",
    "linter",
    "scim",
    "values",
    "gbase",
    "poll",
    "publish",
    "images",
    "lagging",
    "transactions",
    "outage",
    "held",
    "policies",
    "queryback",
    "latency",
    "receiver",
    "webhook",
    "messages",
    "memory",
    "verify",
    "convert",
    "changetables",
    "lake",
    "spark.engines",
    "spark.plans",
    "spark.growth",
    "spark.memory",
    "spark.reading",
    "peers.publish",
    "peers.spark",
    "web",
    "capture.insert",
    "capture.update",
    "capture.delete",
    "capture.one_client",
    "capture.four_clients",
    "capture.log",
)


def chosen(words: Sequence[str]) -> list[str]:
    """The benchmarks that are meant: a name says itself, what stands before a point says all that follow it."""
    return [name for name in NAMES if not words or any(name == word or name.startswith(f"{word}.") for word in words)]
