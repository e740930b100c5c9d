"""Estimates the share of a scan that has to be read once some keys are known."""

from __future__ import annotations

from collections.abc import Mapping

from secateur.partitioning.pruning.expression import UNKNOWN
from secateur.partitioning.pruning.key_bounds import RANGES_MAX
from secateur.planner.prune.scan_bounds import ScanBounds


def partition_selectivity(partitions: float, keys: float) -> float:
    """The share of partitions that some keys fall into, when each falls into any of them alike.

    >>> partition_selectivity(4, 1), round(partition_selectivity(4, 8), 3)
    (0.25, 0.9)
    """
    return 1.0 if partitions <= 1 else 1 - (1 - 1 / partitions) ** keys


def key_selectivity(
    bounds: ScanBounds,
    before: ScanBounds,
    sample_values: Mapping[int, object],
    parameter_count: int,
    keys: float,
    distinct: int,
) -> float:
    """Estimate the share of a scan's rows that is read for some keys.

    Args:
        bounds: The bounds of the scan with lists of keys.
        before: Its bounds without.
        sample_values: Some key of each list, by the index of its parameter.
        parameter_count: How many parameters there are with these; the others are not known.
        keys: The estimated number of keys.
        distinct: How many values the leading column of the primary key has.
    """
    if bounds.tree.root == before.tree.root and bounds.keys == before.keys:
        return 1.0
    unknown = (UNKNOWN,) * parameter_count
    params = [[sample_values[index]] if index in sample_values else value for index, value in enumerate(unknown)]
    one, all_ = len(bounds.tree.bind(params)), len(before.tree.bind(unknown))
    share = partition_selectivity(all_ / max(one, 1), keys) if one < all_ else 1.0
    searched = bounds.keys != before.keys and keys <= RANGES_MAX
    return min(share, keys / distinct) if searched else share
