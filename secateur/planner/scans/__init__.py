"""What is known about each scan: the conjuncts that restrict it, its partition tree, its key ranges, and what it is
co-located with.
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "scan_reading": ["ScanReading", "read_query"],
}

__all__, __getattr__ = exports(__name__, _FILES)
