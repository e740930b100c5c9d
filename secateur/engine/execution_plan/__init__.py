"""Execution plans: from a DAG to the plan of each member, with member pruning."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "partial_aggregation": ["with_partial_aggregation"],
    "plan_builder": ["ExecutionPlan", "ExecutionPlanBuilder"],
}

__all__, __getattr__ = exports(__name__, _FILES)
