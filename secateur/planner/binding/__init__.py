"""Binding: what the names and functions of a statement refer to, which of them are refused, and the bound plan."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "functions": ["TABLE_FUNCTIONS", "VALUE_FUNCTIONS", "is_listed"],
    "query": ["Query", "bind_query"],
    "bound_plan": ["BoundPlan", "Unreadable", "bind_to_plan", "type_uses_in"],
    "normalise": ["normalised"],
    "catalog_view": ["PlanSettings", "Viewer"],
}

__all__, __getattr__ = exports(__name__, _FILES)
