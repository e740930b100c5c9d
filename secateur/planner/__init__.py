"""The planner: from SQL texts to plans that members and clients execute."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "cost_model": ["COST_SETTINGS", "CostModel"],
    "plan_settings": ["PlanSettings"],
    "planner": ["Planner"],
    "segmented_stack": ["FRAMES_MAX", "on_segmented_stack", "with_deep_stack"],
    "select": ["BoundSelect"],
    "statement": [
        "AlterTable",
        "ChangeKind",
        "ChangeStatement",
        "CopyFrom",
        "CopyTo",
        "CreateIndex",
        "CreateTable",
        "CreateTableAs",
        "CreateView",
        "DropIndex",
        "DropTable",
        "DropView",
        "ExplainFormat",
        "ExplainStatement",
        "InsertMode",
        "InsertRows",
        "InsertSelect",
        "Materialized",
        "SelectStatement",
        "SetOption",
        "SubqueryUse",
    ],
}

__all__, __getattr__ = exports(__name__, _FILES)
