"""Which conditions of a statement reach which of its scans, over DuckDB's bound plan: predicate move-around.

Source: Levy, Mumick, Sagiv, "Query Optimization by Predicate Move-Around", VLDB 1994.
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "colocation": ["colocated_scans"],
    "numbering": ["ScanColumn"],
    "descent": ["NOTHING", "Constrained", "ScanConditions", "constrained"],
}

__all__, __getattr__ = exports(__name__, _FILES)
