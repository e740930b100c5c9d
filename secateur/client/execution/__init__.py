"""The execution of statements by the client: routing, retries, and the cost of a run."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "insert": ["filled_rows"],
    "routing": ["ExecutionMode"],
    "scatter": ["merge_rows"],
    "snapshot": ["Snapshot", "SnapshotPart", "SnapshotReader", "close_snapshot", "open_snapshot", "prepared_query"],
    "verify": ["same_rows"],
    "shared_plans": ["take_literals"],
    "retry_policy": ["PlanBackoff"],
}

__all__, __getattr__ = exports(__name__, _FILES)
