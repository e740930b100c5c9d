"""Statements that define tables and their ranges."""
