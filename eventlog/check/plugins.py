"""Points about what other packages bring: what is there, from which package, and what their own
checks say.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from eventlog.check.outputs import finding_points
from eventlog.check.point import Point, ok, points, warning
from eventlog.config.settings import Config
from eventlog.core.registry import GROUPS, Offer, load_offer, offers, problem


def plugin_points(config: Config) -> Iterator[Point]:
    """Yield a line for each foreign plug-in, then the findings of each check."""
    for group in GROUPS:
        for offer in offers(group):
            if offer.is_ours:
                continue
            why = problem(offer)
            if why is None:
                yield ok("plug-ins", offer.description)
            else:
                yield warning("plug-ins", why, "Update or uninstall it; nothing else needs it.")
    for offer in offers("checks"):
        if problem(offer) is None:
            yield from points(offer.name, partial(_findings, offer, config))


def _findings(offer: Offer, config: Config) -> Iterator[Point]:
    yield from finding_points(offer.name, load_offer(offer).findings(config))
