"""Statements that change rows."""
