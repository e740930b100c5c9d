"""The text of an expression with every cast that DuckDB has bound, also where it would make the cast by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from secateur.planner.tree import expressions as ex
from secateur.planner.tree.bound_text import BoundText
from secateur.planner.tree.expression_sql import expression_sql


class _AsBound(BoundText):
    """A text in which the value of a parameter has its own type, and every cast is written."""

    def is_bare(self, node: ex.AnyExpression) -> bool:
        return isinstance(node, ex.BoundParameter)

    def is_implicit(self, cast: ex.Call) -> bool:
        return False


_AS_BOUND: Final = _AsBound()


def sql_as_bound(expression: ex.AnyExpression, columns: Sequence[str] = ()) -> str:
    """The text of an expression over columns with these texts.

    Raises:
        Unprintable: A part has no text.
    """
    return expression_sql(expression, columns, _AS_BOUND)
