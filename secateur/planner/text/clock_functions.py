"""Spellings of the functions of the clock, and the text of a statement in which parameters stand for some."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from secateur.planner.text.dialect import to_sql
from secateur.planner.text.trees import copied

CLOCK: Final = "clock"
"""The mark of a node that stands for a function of the clock; its value is the text of the call."""

KEYWORDS: Final = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"})
"""The functions that are written without parentheses, like columns."""


def sql_as_written(node: exp.Expr) -> str:
    """The text of a part of a statement for the user, with functions of the clock where parameters stand for them."""
    if not any(CLOCK in part.meta for part in node.walk()):
        return to_sql(node)
    return to_sql(copied(node).transform(lambda part: exp.Var(this=part.meta[CLOCK]) if CLOCK in part.meta else part))
