"""Statements that only leave out rows and columns of one table."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

_CLAUSES: Final = frozenset({"expressions", "from_", "where"})


def filters_one_table(query: exp.Expr) -> bool:
    """Whether a bound statement selects columns of one table by a condition on each row alone.

    Aggregates and window functions cannot stand in WHERE; a subquery can, and may read other rows.
    """
    if not isinstance(query, exp.Select) or any(value and key not in _CLAUSES for key, value in query.args.items()):
        return False
    from_, where = query.args.get("from_"), query.args.get("where")
    table = None if from_ is None else from_.this
    return (
        isinstance(table, exp.Table)
        and not any(value and key not in ("this", "alias") for key, value in table.args.items())
        and all(
            isinstance(item.unalias(), exp.Column) or (isinstance(item, exp.Star) and not any(item.args.values()))
            for item in query.expressions
        )
        and (where is None or where.find(exp.Query) is None)
    )
