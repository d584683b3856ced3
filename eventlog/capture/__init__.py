"""Capture: the log is installed, roles get their rights, and triggers write every change of a table
into the log.
"""

from __future__ import annotations

from eventlog.capture.installed import TriggerCondition, TriggerState, compare, tracked
from eventlog.capture.plan import Style, TriggerOptions, TriggerPlan, plan
from eventlog.capture.render import Trigger, render
from eventlog.capture.requests import TrackRequest
from eventlog.capture.track import located, track, track_sql, trigger_states, untrack

__all__ = [
    "Style",
    "TrackRequest",
    "Trigger",
    "TriggerCondition",
    "TriggerOptions",
    "TriggerPlan",
    "TriggerState",
    "compare",
    "located",
    "plan",
    "render",
    "track",
    "track_sql",
    "tracked",
    "trigger_states",
    "untrack",
]
