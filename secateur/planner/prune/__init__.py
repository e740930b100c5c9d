"""The scans of a query: from the conditions on each to its partitions and keys, over DuckDB's bound plan.

Source: the filter analysis of "SQL Optimization for Partition Pruning" (Hazelcast), the value sets of Kudu's column
predicates.
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "bounds": ["BOXES_MAX", "Boxes", "NOWHERE", "ScanBounds", "UNBOUNDED", "intersect", "multiply", "unite"],
    "predicate": ["PredicateReader"],
    "truth": ["Truth"],
    "carried_values": ["ColumnEqualities"],
    "scan_reading": ["ScanReading", "bound_scan", "read_query"],
}

__all__, __getattr__ = exports(__name__, _FILES)
