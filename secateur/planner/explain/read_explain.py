"""Parses the head of an EXPLAIN: ``EXPLAIN [ANALYZE] [(option, ...)]``.

An option is ``FORMAT JSON``, ``FORMAT TEXT`` or ``ANALYZE``.
"""

from __future__ import annotations

from secateur.planner.statement import ExplainFormat
from secateur.planner.text.token_cursor import TokenCursor


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
            else:
                cursor.expect("FORMAT")
                form = _format(cursor)
            if not cursor.accept(","):
                break
        cursor.expect(")")
    if cursor.at_end or cursor.at("EXPLAIN"):
        raise cursor.expected("a statement to explain")
    return form, analyze


def _format(cursor: TokenCursor) -> ExplainFormat:
    if cursor.accept("JSON"):
        return ExplainFormat.JSON
    if cursor.accept("TEXT"):
        return ExplainFormat.TEXT
    raise cursor.expected("JSON or TEXT")
