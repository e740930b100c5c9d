"""Rewrites that open pruning: named rules over the relational tree, one file each; :mod:`rules` has their order.

What runs is the user's own text whatever is rewritten here, so that no rule can change an answer but by what it lets a
scan leave out. Each rule keeps the rows of the relation it changes, and their number.
``SET disabled_rules = 'in_pull_out, ...'`` switches rules off by name.

Source: "Query Rewrite" of IEP-24 (Ignite).
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "rules": ["RULES", "rewritten", "rule_names"],
}

__all__, __getattr__ = exports(__name__, _FILES)
