"""EXPLAIN: the partitions and members that a statement would touch, and why not fewer."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "scan_facts": ["ExplainedStep", "combined_execution_mode", "needs_values"],
}

__all__, __getattr__ = exports(__name__, _FILES)
