"""The planner: from SQL texts to plans that members and clients execute."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "aggregates": ["AGGREGATES", "SPLIT", "SqlAggregate"],
    "cached_plan": ["typed_parameters"],
    "cost_model": ["COST_SETTINGS", "CostModel"],
    "planner": ["Planner"],
    "select": ["BoundSelect"],
    "statement": [
        "AlterColumns",
        "AlterResourceGroup",
        "AlterTable",
        "Command",
        "CommentOn",
        "CreateIndex",
        "CreateResourceGroup",
        "CreateTable",
        "CreateView",
        "DropIndex",
        "DropResourceGroup",
        "DropTable",
        "DropView",
        "ExplainFormat",
        "ExplainStatement",
        "PlannedSelect",
        "PlannedStep",
        "PlannedSteps",
        "KillJob",
        "KillStatement",
        "SetGlobalPruning",
    ],
    "row_estimates": ["Estimate", "estimate_of", "partition_selectivity"],
}

__all__, __getattr__ = exports(__name__, _FILES)
