"""The text of a statement: tokens, positions, parameters, hoisted lists, and DuckDB's syntax tree."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "deep_json": ["read_json"],
    "syntax": ["parse_query"],
    "tokens": ["tokenize"],
    "hoisted_lists": ["hoist_lists"],
    "literal_rows": ["take_literal_rows"],
    "named_types": ["named_types_in"],
    "parameters": ["NO_PARAMETERS", "ParameterStyle", "Parameters", "read_parameters"],
    "compared_syntax": ["compared_trees"],
    "splicing": ["splice", "spliced"],
    "token_cursor": ["TokenCursor"],
}

__all__, __getattr__ = exports(__name__, _FILES)
