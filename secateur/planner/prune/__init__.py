"""From the conditions on one scan to its partitions and keys: pruning, over DuckDB's bound plan.

Source: the filter analysis of "SQL Optimization for Partition Pruning" (Hazelcast), the value sets of Kudu's column
predicates.
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "bounds": ["BOXES_MAX", "Boxes", "NOWHERE", "UNBOUNDED", "intersect", "multiply", "unite"],
    "column_equalities": ["ColumnEqualities"],
    "predicate": ["PredicateReader"],
    "scan": ["bound_scan"],
    "scan_bounds": ["ScanBounds"],
    "truth": ["Truth"],
}

__all__, __getattr__ = exports(__name__, _FILES)
