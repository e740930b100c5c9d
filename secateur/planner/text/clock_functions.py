"""The functions that tell the time at which a statement began, and how they follow from one."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from secateur.planner.text.dialect import to_sql
from secateur.planner.text.trees import copied

__all__ = ["CLOCK", "CLOCKS", "KEYWORDS", "sql_as_written"]

CLOCK: Final = "clock"
"""The mark of a node that stands for a function of the clock; its value is the text of the call."""

CLOCKS: Final = {
    **dict.fromkeys(("now", "current_timestamp", "get_current_timestamp", "transaction_timestamp"), ()),
    **dict.fromkeys(("current_date", "today"), ("DATE",)),
    **dict.fromkeys(("localtimestamp", "current_localtimestamp"), ("TIMESTAMP",)),
    **dict.fromkeys(("localtime", "current_localtime"), ("TIMESTAMP", "TIME")),
    **dict.fromkeys(("current_time", "get_current_time"), ("TIMETZ",)),
}
"""The functions of the clock, by their names, and the casts by which each follows from a TIMESTAMPTZ."""

KEYWORDS: Final = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"})
"""Those that are written without parentheses, like columns."""


def sql_as_written(node: exp.Expr) -> str:
    """The text of a part of a statement for the user, with functions of the clock where parameters stand for them."""
    if not any(CLOCK in part.meta for part in node.walk()):
        return to_sql(node)
    return to_sql(copied(node).transform(lambda part: exp.Var(this=part.meta[CLOCK]) if CLOCK in part.meta else part))
