"""Placement: which parts of a statement are computed where the rows are, and what has to move for that."""
