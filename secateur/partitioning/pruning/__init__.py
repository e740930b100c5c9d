"""Partition pruning: from predicates to value domains, key ranges and the partition tree."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "comparison": ["Comparison", "compare"],
    "comparison_target": [
        "AbsoluteColumn",
        "BARE",
        "ComparisonTarget",
        "LinearColumn",
        "RowField",
        "ShortText",
        "TruncatedColumn",
        "WidenedColumn",
        "allowed",
    ],
    "condition": ["Box", "Choice", "Constraint", "ParameterComparison", "UNCONSTRAINED"],
    "domain": ["Domain", "EVERYTHING", "NOTHING", "Span", "close_spans", "enumerate_points", "points", "within"],
    "expression": ["ParameterFunction", "UNKNOWN"],
    "key_range": [
        "EVERY_KEY",
        "IndexSlice",
        "KeyBoundary",
        "KeyBounds",
        "KeyPrefix",
        "KeyRange",
        "KeyRanges",
        "KeySlice",
        "RANGES_MAX",
        "intersect_ranges",
        "key_ranges",
        "unite_ranges",
    ],
    "nodes": [
        "All",
        "AllOf",
        "AnyOf",
        "Everywhere",
        "Keys",
        "Node",
        "Nothing",
        "Partitions",
        "Satisfiable",
        "intersect",
        "unite",
    ],
    "operand": ["Cast", "Computed", "Constant", "Evaluated", "Operand", "Parameter", "ParameterList"],
    "regular_expressions": ["texts_matched", "texts_similar"],
    "row_predicate": ["OpenPredicate", "RowPredicate", "ValueSet", "between", "may_hold", "one_of"],
    "select_partitions": ["combination_limit"],
    "text_sets": ["starting_with", "texts_globbed", "texts_like", "texts_like_in_any_case"],
    "tree": ["PartitionTree"],
}

__all__, __getattr__ = exports(__name__, _FILES)
