"""Random predicates with subqueries in them: behind IN and ANY, beside comparisons, nested, correlated, over common
table expressions.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from predicates import Predicates

__all__ = ["SubqueryPredicates"]


class SubqueryPredicates(Predicates):
    """Predicates over the columns of ``t`` whose subqueries read ``u``, ``t`` and ``w``, which is a common table
    expression.

    Args:
        rng: Where chance comes from.
        qualifier: In front of the columns.
        depth: How deep subqueries may be nested from here.
        outer: The qualifier of the query around this one, for correlated columns; empty when there is none.
        makers: The parameters so far, shared with the query around this one.
    """

    def __init__(
        self,
        rng: random.Random,
        qualifier: str = "",
        *,
        depth: int = 2,
        outer: str = "",
        makers: list[Callable[[], Any]] | None = None,
    ) -> None:
        super().__init__(rng, qualifier)
        self.depth = depth
        self.outer = outer
        if makers is not None:
            self.makers = makers

    def leaf(self) -> str:
        if self.outer and self.rng.random() < 0.15:
            column = self.rng.choice("abcv")
            return f"{self.qualifier}{column} = {self.outer}{column}"
        return self.subquery_form() if self.depth and self.rng.random() < 0.45 else super().leaf()

    def subquery_form(self) -> str:
        rng = self.rng
        column = rng.choice("aaabbbccv")
        name = self.qualifier + column
        match rng.choice(
            [
                "IN",
                "IN",
                "IN",
                "ANY",
                "SOME",
                "ALL",
                "NOT IN",
                "=",
                "=",
                "<",
                ">=",
                "BETWEEN",
                "mirrored",
                "EXISTS",
                "in a list",
                "expression",
            ]
        ):
            case "IN":
                return f"{name} IN ({self.values_of(column)})"
            case "NOT IN":
                return f"{name} NOT IN ({self.values_of(column)})"
            case "ANY":
                return f"{name} = ANY ({self.values_of(column)})"
            case "SOME":
                return f"{name} = SOME ({self.values_of(column)})"
            case "ALL":
                return f"{name} <> ALL ({self.values_of(column)})"
            case "BETWEEN":
                return f"{name} BETWEEN ({self.value_of(column)}) AND ({self.value_of(column)})"
            case "mirrored":
                return f"({self.value_of(column)}) {rng.choice(['=', '<='])} {name}"
            case "expression":
                tail = {
                    "a": [" + 1", " * 2", "::BIGINT"],
                    "v": [" - 1"],
                    "b": [" || ''", "::VARCHAR"],
                    "c": [" + 1", " - INTERVAL 2 DAY", "::DATE"],
                }[column]
                return f"{name} {rng.choice(['=', '=', '<', '>='])} ({self.value_of(column)}){rng.choice(tail)}"
            case "EXISTS":
                return f"EXISTS ({self.values_of(column)})"
            case "in a list":
                return f"{name} IN (({self.value_of(column)}), {self.value(column)})"
            case form:
                return f"{name} {form} ({self.value_of(column)})"

    def values_of(self, column: str) -> str:
        """A subquery of one column of any number of rows."""
        rng = self.rng
        alias = f"q{rng.randint(0, 9)}"
        inner = SubqueryPredicates(
            rng, f"{alias}.", depth=self.depth - 1, outer=self.qualifier or "t.", makers=self.makers
        )
        item = (
            f"{alias}.{column}"
            if column != "a" or rng.random() < 0.7
            else rng.choice([f"{alias}.v", f"{alias}.a + 1", "NULL::INTEGER"])
        )
        source = f"{rng.choice(['u', 'u', 't', 'w'])} AS {alias}"
        query = (
            f"SELECT {rng.choice(['', '', 'DISTINCT '])}{item} FROM {source} WHERE {inner.predicate(rng.randint(0, 2))}"
        )
        match rng.choice(["", "", "", "group", "union", "order", "derived"]):
            case "group":
                return (
                    f"SELECT {rng.choice(['max', 'min'])}({alias}.{column}) FROM {source} WHERE {inner.predicate(1)}"
                    f" GROUP BY {alias}.b"
                )
            case "union":
                return (
                    f"{query} {rng.choice(['UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT'])} SELECT {column} FROM u WHERE"
                    " v > 0"
                )
            case "order":
                return f"{query} ORDER BY 1"
            case "derived":
                return f"FROM ({query})"
            case _:
                return query

    def value_of(self, column: str) -> str:
        """A subquery of at most one row."""
        rng = self.rng
        alias = f"q{rng.randint(0, 9)}"
        inner = SubqueryPredicates(
            rng, f"{alias}.", depth=self.depth - 1, outer=self.qualifier or "t.", makers=self.makers
        )
        source = f"{rng.choice(['u', 'u', 't', 'w'])} AS {alias}"
        if rng.random() < 0.7:
            return f"SELECT {rng.choice(['max', 'min'])}({alias}.{column}) FROM {source} WHERE {inner.predicate(1)}"
        return f"SELECT {alias}.{column} FROM {source} WHERE {inner.predicate(1)} ORDER BY a, b, c LIMIT 1"
