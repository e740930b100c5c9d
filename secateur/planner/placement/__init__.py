"""Placement: which parts of a statement are computed where their rows are, and which rows have to move for that."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "cost": ["Estimate", "estimate_of"],
    "distribution": [
        "Distribution",
        "Distributions",
        "HashPartitioned",
        "Repartition",
        "Replicated",
        "UnsupportedDistribution",
    ],
    "search": ["PlacementChoice", "find_anchor"],
    "select_blocks": [
        "behind_from",
        "core_of",
        "is_windowed",
        "nested_queries",
        "ordered_source",
        "qualified_block",
        "title_of",
        "without_order",
    ],
    "stage_builder": ["StageDraft"],
    "table_references": ["tagged_tree"],
}

__all__, __getattr__ = exports(__name__, _FILES)
