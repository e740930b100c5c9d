"""Checks of what has been made of a statement against the user's own text, both as DuckDB's parser reads them."""
