"""Explains why a predicate that mentions a key column does not prune, in the user's terms and with what to change."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from secateur.partitioning.types.column_type import SqlType
from secateur.planner.text.clock_functions import sql_as_written

_SHOWN_MAX: Final = 60


def why_unused(column: str, part: exp.Column, whole: exp.Expr, column_type: SqlType) -> str:
    """Return the prune reason, which depends on the expression around the column.

    Args:
        column: The column's name.
        part: Its node in the predicate.
        whole: The predicate.
        column_type: The column's type.
    """
    holder = part.parent
    while isinstance(holder, exp.Paren):
        holder = holder.parent
    match holder:
        case exp.Cast():
            return f"{column} is cast in {shown(whole)}: compare the bare column with a {column_type}"
        case exp.Collate():
            return f"{column} is compared under another collation in {shown(whole)}: compare the bare column"
        case exp.Func() if not isinstance(holder, (exp.And, exp.Or)):
            return (
                f"{column} is wrapped in"
                f" {holder.sql_name().lower() if not isinstance(holder, exp.Anonymous) else holder.name}(): compare the"
                " bare column"
            )
        case exp.Is():
            return f"{shown(whole)} does not restrict {column} to values: compare {column} with = or IN"
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            return f"{shown(whole)} can be TRUE where an outer join has filled {column} with NULL: compare with = or <>"
        case exp.In():
            return (
                f"{column} is compared with a subquery or with a list that is not constant: pass the "
                "values as parameters"
            )
        case exp.ILike():
            return f"ILIKE compares {column} without regard to case: use LIKE, or compare {column} with values"
        case exp.Like() | exp.SimilarTo() | exp.RegexpLike() | exp.Glob():
            return (
                f"{column} is matched by a pattern that does not bound it: compare it with values, or with "
                "LIKE 'prefix%'"
            )
        case exp.Tuple() if isinstance(holder.parent, exp.In) and holder.parent.args.get("query"):
            return f"{column} is part of a row value that is compared with a subquery: pass the rows as parameters"
        case exp.Tuple():
            return (
                f"{column} is part of a row value in {shown(whole)} that may be NULL, or that is not "
                "compared with constants: compare each column by itself"
            )
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return (
                f"{column} is not compared with a constant or a parameter in {shown(whole)}: pass the "
                "value as a parameter"
            )
        case exp.Binary() | exp.Unary():
            return f"{column} is part of an expression in {shown(whole)}: compare the bare column"
        case _:
            return f"{shown(whole)} does not bound {column}: compare {column} with =, IN, <, BETWEEN or LIKE 'prefix%'"


def shown(node: exp.Expr) -> str:
    """The text of a node, not too long for a message."""
    text = sql_as_written(node)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."
