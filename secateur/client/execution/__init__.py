"""The execution of statements by the client: routing, retries, and the cost of a run."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "insert": ["filled_rows"],
    "plan_backoff": ["PlanBackoff"],
    "routing": ["ExecutionMode"],
    "scatter": ["merge_rows"],
    "snapshot": ["Snapshot", "SnapshotPart", "SnapshotReader", "close_snapshot", "open_snapshot", "prepared_query"],
    "taken_literals": ["take_literals"],
    "verify": ["same_rows"],
}

__all__, __getattr__ = exports(__name__, _FILES)
