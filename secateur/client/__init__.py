"""The thin client: knows the partition function and the owners, and sends statements straight to the owning member."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "dbapi.connection": ["Connection", "Explain"],
    "dbapi.cursor": ["Cursor"],
    "dbapi.stats": ["QueryStats"],
    "jobs.job": ["Job"],
    "jobs.light_job": ["LightJob"],
    "jobs.resolved_plan": ["ResolvedPlan"],
    "loads.table_handle": ["TableHandle"],
}

__all__, __getattr__ = exports(__name__, _FILES)
