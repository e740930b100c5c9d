"""The text of a statement: tokens, positions, parameters, hoisted lists, and DuckDB's syntax tree."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "syntax": ["compared_trees", "parse_query"],
    "tokens": ["tokenize"],
    "hoisted_lists": ["hoist_lists"],
    "named_types": ["named_types_in"],
    "parameters": ["NO_PARAMETERS", "ParameterStyle", "Parameters", "TypeUses", "read_parameters", "sample_value"],
    "token_cursor": ["TokenCursor"],
    "positions": ["splice", "spliced"],
}

__all__, __getattr__ = exports(__name__, _FILES)
