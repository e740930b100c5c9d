"""The text of a statement: tokens, positions, parameters, hoisted lists, and the cross-check with DuckDB's parser."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "deep_json": ["read_json", "same_json"],
    "dialect": ["parse_query", "to_sql", "tokenize"],
    "hoisted_lists": ["hoist_lists"],
    "literal_rows": ["take_literal_rows"],
    "parameters": ["ParameterStyle", "Parameters", "read_parameters"],
    "parser_cross_check": ["DuckDBParse", "read_statement", "read_statements"],
    "splicing": ["splice", "spliced"],
    "token_cursor": ["TokenCursor"],
    "trees": ["children_of", "copied", "tables_in"],
}

__all__, __getattr__ = exports(__name__, _FILES)
