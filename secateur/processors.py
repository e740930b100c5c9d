"""The built-in processors: each function makes a supplier for ``DAG.new_vertex(name, supplier)``."""

from __future__ import annotations

from secateur.engine.processors.aggregate import accumulate, aggregate, combine, distinct
from secateur.engine.processors.aggregates import (
    AggregateExpression,
    AggregateOperation,
    avg_of,
    count_distinct_of,
    count_of,
    count_rows,
    list_of,
    max_of,
    min_of,
    sum_of,
)
from secateur.engine.processors.hash_join import hash_join
from secateur.engine.processors.merge import merge, union
from secateur.engine.processors.order_and_limit import SortKey, desc
from secateur.engine.processors.row_functions import (
    filter_dicts,
    filter_rows,
    flat_map_dicts,
    key_by,
    map_batches,
    map_dicts,
)
from secateur.engine.processors.sort import merge_runs, sort, sort_runs, top_n

__all__ = [
    "AggregateExpression",
    "AggregateOperation",
    "SortKey",
    "accumulate",
    "aggregate",
    "avg_of",
    "combine",
    "count_distinct_of",
    "count_of",
    "count_rows",
    "desc",
    "distinct",
    "filter_dicts",
    "filter_rows",
    "flat_map_dicts",
    "hash_join",
    "key_by",
    "list_of",
    "map_batches",
    "map_dicts",
    "max_of",
    "merge",
    "merge_runs",
    "min_of",
    "sort",
    "sort_runs",
    "sum_of",
    "top_n",
    "union",
]
