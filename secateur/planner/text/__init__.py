"""The text of a statement: tokens, positions, parameters, long lists, and how DuckDB reads it."""
