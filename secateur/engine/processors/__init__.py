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
    "order_and_limit": ["RowLimit", "SortKey", "desc"],
    "row_functions": ["filter_rows", "map_batches"],
    "sort": ["RUN"],
}

__all__, __getattr__ = exports(__name__, _FILES)
