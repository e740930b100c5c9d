"""Checks that compare the texts made from a statement with the user's own text, both as DuckDB parses them."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "claims": ["PlacedText", "Source"],
    "columns_by_position": ["read_by_position"],
    "equalities": ["Equalities"],
    "placed": ["placed_difference"],
    "recomposed": ["difference", "spelling_difference"],
    "scope": ["Scope", "conditions_with_scopes", "set_operations_with_scopes"],
    "select_node": ["Node", "named_columns"],
    "set_operations": ["SetOperations"],
}

__all__, __getattr__ = exports(__name__, _FILES)
