"""Jobs from the client: submission, status, results, and the resolved plan as text or picture."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "job": ["JobLog", "LogLine"],
    "resolved_plan": ["ResolvedPlan"],
}

__all__, __getattr__ = exports(__name__, _FILES)
