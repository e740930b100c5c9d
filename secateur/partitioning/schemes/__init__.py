"""Partition schemes: hash components and range partitions, and which partition a row belongs to."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "components": [
        "HashComponent",
        "IntervalPartitioning",
        "IntervalUnit",
        "ROW_ID",
        "RangeComponent",
        "RangePartition",
        "RetiredRange",
        "no_garbage_collection",
    ],
    "hashing": ["SPARK_SEED", "first_seed", "hash_columns", "hash_values", "pmod", "pmod_array"],
    "range_changes": ["AddRange", "DropNamed", "DropRange", "RangeChange", "alter_ranges", "with_cells"],
    "ranges": ["RangeIndex"],
    "scheme": ["PartitionScheme"],
    "scheme_rules": ["RangeSpec", "build_scheme", "catch_all", "single_value", "split_at"],
}

__all__, __getattr__ = exports(__name__, _FILES)
