"""The built-in processors."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "aggregates": [
        "AggregateExpression",
        "avg_of",
        "count_distinct_of",
        "count_of",
        "count_rows",
        "list_of",
        "max_of",
        "min_of",
        "sum_of",
    ],
    "grouping": ["KernelGrouping"],
    "kernel": ["Kernel"],
    "result_sink": ["ResultSink"],
    "row_functions": ["filter_rows", "map_batches"],
    "row_limit": ["RowLimit"],
    "sort_key": ["SortKey", "desc"],
    "sorted_runs": ["RUN"],
}

__all__, __getattr__ = exports(__name__, _FILES)
