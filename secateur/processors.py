"""The built-in processors: each function makes a supplier for ``DAG.new_vertex(name, supplier)``."""

from __future__ import annotations

from secateur.engine.processors.aggregate import accumulate, aggregate, combine
from secateur.engine.processors.aggregate_operation import AggregateOperation
from secateur.engine.processors.aggregates import (
    AggregateExpression,
    avg_of,
    count_distinct_of,
    count_of,
    count_rows,
    list_of,
    max_of,
    min_of,
    sum_of,
)
from secateur.engine.processors.distinct import distinct
from secateur.engine.processors.hash_join import hash_join
from secateur.engine.processors.key_by import key_by
from secateur.engine.processors.merge import merge
from secateur.engine.processors.row_functions import filter_dicts, filter_rows, flat_map_dicts, map_batches, map_dicts
from secateur.engine.processors.sort import sort
from secateur.engine.processors.sort_key import SortKey, desc
from secateur.engine.processors.sorted_runs import merge_runs, sort_runs
from secateur.engine.processors.top_n import top_n
from secateur.engine.processors.union import union

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
