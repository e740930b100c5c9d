"""ANALYZE and VACUUM, which tools send: queries of one row that says why there is nothing to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from secateur.partitioning.tables.identifier import text_literal
from secateur.planner.dml.target import read_relation
from secateur.planner.text.token_cursor import TokenCursor

_ANSWERS: Final = {
    "ANALYZE": "ANALYZE is not needed: members count and sample their rows by themselves as they change",
    "VACUUM": "VACUUM is not needed: members merge changes into their partitions, and free memory, by themselves",
}


def read_maintenance(cursor: TokenCursor, find: Callable[[str], Any]) -> str:
    """Read ``ANALYZE [t]``, ``VACUUM [t]`` or ``VACUUM ANALYZE [t]``; return the query that answers it.

    Args:
        cursor: At the first word.
        find: The catalog's lookup by name.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError: With the position of the name.
    """
    words = [cursor.take().text.upper()]
    if words == ["VACUUM"] and cursor.accept("ANALYZE"):
        words.append("ANALYZE")
    if not cursor.at_end:
        read_relation(cursor, find)
    cursor.expect_end()
    answer = "; ".join(_ANSWERS[word] for word in words)
    return f"SELECT {text_literal(answer)} AS notice"
