"""Queries in steps: subqueries and join keys are computed first, and their values prune the rest.

Source: "Materialization" of IEP-24 (Ignite).
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "subqueries": ["Subquery", "find_subqueries"],
}

__all__, __getattr__ = exports(__name__, _FILES)
