"""Which texts the dashboard executes to measure them: queries alone."""

from __future__ import annotations

import re
from typing import Final

from secateur.errors import ProgrammingError

_COMMENT: Final = re.compile(r"\s+|--[^\n]*(?:\n|$)|/\*.*?\*/", re.DOTALL)
_FIRST: Final = re.compile(r"SELECT\b|FROM\b|VALUES\b|WITH\b|\(", re.IGNORECASE)
_CHANGES: Final = re.compile(r"\b(?:INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)


def check_query(sql: str) -> str:
    """Return the text of a query without comments before it.

    EXPLAIN ANALYZE executes its statement, and the two sides of a comparison do so several times: a change of rows must
    not happen for that. The planner says only of some statements whether they change rows, so a text has to look like
    a query; one that begins with WITH and has a word such as DELETE is refused even where that is a name.

    Raises:
        ProgrammingError: It may be something else.
    """
    start = 0
    while (skipped := _COMMENT.match(sql, start)) is not None:
        start = skipped.end()
    text = sql[start:]
    first = _FIRST.match(text)
    if first is None or (first[0].upper() == "WITH" and _CHANGES.search(text)):
        raise ProgrammingError(
            "only queries are measured here, because that executes them: use Run for a statement that changes"
            " something, or EXPLAIN, which executes nothing"
        )
    return text
