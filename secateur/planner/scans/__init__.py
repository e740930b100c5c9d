"""The analysis of each scan: its predicates, its partition tree, its key ranges, and its co-location."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "row_estimates": ["Estimate", "estimate_of"],
    "scan_reading": ["ScanReading", "read_query"],
}

__all__, __getattr__ = exports(__name__, _FILES)
