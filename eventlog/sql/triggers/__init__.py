"""Triggers as values: planned from a table, rendered for a database, compared with what stands there."""

from __future__ import annotations

from eventlog.sql.triggers.asked import TrackRequest
from eventlog.sql.triggers.installed import TriggerCondition, TriggerState, compare, installed, tracked
from eventlog.sql.triggers.plan import Style, TriggerOptions, TriggerPlan, plan
from eventlog.sql.triggers.render import Trigger, render
from eventlog.sql.triggers.track import located, track, track_sql, trigger_states, untrack

__all__ = [
    "Style",
    "TrackRequest",
    "Trigger",
    "TriggerCondition",
    "TriggerOptions",
    "TriggerPlan",
    "TriggerState",
    "compare",
    "installed",
    "located",
    "plan",
    "render",
    "track",
    "track_sql",
    "tracked",
    "trigger_states",
    "untrack",
]
