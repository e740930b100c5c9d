"""Rewrites that open pruning: named rules over the relational tree, one file each; :mod:`rules` has their order.

The user's own text runs whatever is rewritten here, so a rule can change an answer only by letting a scan leave out
rows. Each rule keeps the rows of the relation it changes, and their number. ``SET disabled_rules = 'in_pull_out, ...'``
disables rules by name.

Source: "Query Rewrite" of IEP-24 (Ignite).
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "rules": ["RULES", "rewritten", "rule_names"],
}

__all__, __getattr__ = exports(__name__, _FILES)
