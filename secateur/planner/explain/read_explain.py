"""The head of an EXPLAIN: ``EXPLAIN [ANALYZE] [(option, ...)]``, where an option is ``FORMAT JSON``, ``FORMAT TEXT`` or ``ANALYZE``."""

from __future__ import annotations

from secateur.planner.statement import ExplainFormat
from secateur.planner.text.token_cursor import TokenCursor

__all__ = ["read_explain"]


def read_explain(cursor: TokenCursor) -> tuple[ExplainFormat, bool]:
    """Read up to the statement to explain; returns the form of the answer, and whether the statement is to be run.

    Raises:
        SqlSyntaxError: Another option, or no statement.
    """
    cursor.expect("EXPLAIN")
    form, analyze = ExplainFormat.TEXT, cursor.accept("ANALYZE")
    if cursor.at("(", "FORMAT") or cursor.at("(", "ANALYZE"):
        cursor.expect("(")
        while True:
            if cursor.accept("ANALYZE"):
                analyze = True
            elif cursor.accept("FORMAT", "JSON"):
                form = ExplainFormat.JSON
            elif not cursor.accept("FORMAT", "TEXT"):
                raise cursor.expected("ANALYZE, FORMAT JSON or FORMAT TEXT")
            if not cursor.accept(","):
                break
        cursor.expect(")")
    if cursor.at_end or cursor.at("EXPLAIN"):
        raise cursor.expected("a statement to explain")
    return form, analyze
