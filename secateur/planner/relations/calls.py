"""What the expressions of a SELECT hold: windows, aggregates, and what stands for several columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from secateur.planner.text.folding import folded

__all__ = ["may_aggregate", "may_be_many", "names_a_window", "windows_in"]

# Functions by class that sqlglot knows and that do not aggregate.
_SCALAR: Final = (exp.Connector, exp.Cast, exp.Case, exp.If, exp.Coalesce, exp.Extract, exp.Substring, exp.Trim, exp.Array)


def windows_in(part: exp.Expr) -> Iterator[exp.Window]:
    """The windows of an expression outside of its subqueries."""
    pending = [part]
    while pending:
        item = pending.pop()
        if isinstance(item, exp.Window):
            yield item
        if not isinstance(item, (exp.Literal, exp.Query)):
            pending.extend(item.iter_expressions())


def names_a_window(predicate: exp.Expr) -> bool:
    """Whether a predicate says ``OVER w``. It cannot be read by itself, so that DuckDB cannot confirm it."""
    return any(isinstance(window.args.get("alias"), exp.Identifier) for window in windows_in(predicate))


def may_be_many(item: exp.Expr) -> bool:
    """Whether an item of a SELECT list may stand for several columns."""
    pending = [item]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Star) or (isinstance(node, exp.Anonymous) and folded(node.name) in ("columns", "unnest", "unpack")):
            return True
        if not isinstance(node, (exp.Literal, exp.Query)) and not (isinstance(node, exp.Count) and isinstance(node.this, exp.Star)):
            pending.extend(node.iter_expressions())
    return False


def may_aggregate(part: exp.Expr | None) -> bool:
    """Whether an expression calls, outside of windows, a function of which it is not certain that it does not aggregate.

    One in a subquery may aggregate the rows outside, when all that it names is from there.
    """
    pending = [] if part is None else [part]
    while pending:
        item = pending.pop()
        if isinstance(item, exp.Func) and not isinstance(item, _SCALAR):
            return True
        if isinstance(item, exp.Window):
            # Its function aggregates no rows; what is inside of the call may: sum(count(*)) OVER ().
            pending.extend(part for child in item.iter_expressions() for part in (child.iter_expressions() if isinstance(child, exp.Func) else [child]))
        elif not isinstance(item, exp.Literal):
            pending.extend(item.iter_expressions())
    return False
