"""EXPLAIN: what a statement would touch, and why not less."""
