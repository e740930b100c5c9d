"""Checks, in DuckDB's syntax trees, that one statement is another with parameters in place of subqueries.

The planner puts parameters into the text of a statement where its tokens show a subquery. This check ensures that
DuckDB sees it there: the trees of both texts must be the same except for these places, and each replaced part must be
the tree of the subquery's own text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from secateur.planner.text.syntax import SyntaxNode


def is_substituted(original: SyntaxNode, other: SyntaxNode, subqueries: Mapping[int, SyntaxNode]) -> bool:
    """Whether ``other`` is ``original`` with parameters in place of subqueries.

    ``$n`` or ``CAST($n AS type)`` replace scalar subqueries, ``(SELECT unnest($n))`` those behind IN.

    Args:
        original: The statement as it was.
        other: The statement with parameters.
        subqueries: The subquery that each of these parameters replaces, by the number of the parameter.

    Cost: linear in the trees.
    """
    pending: list[tuple[Any, Any]] = [(original, other)]
    replaced: set[int] = set()
    while pending:
        was, now = pending.pop()
        if isinstance(was, dict) and isinstance(now, dict):
            number = _stands_for(was, now)
            if number is not None and number in subqueries:
                replaced.add(number)
                pending.append((was["subquery"]["node"], subqueries[number]))
                if was["subquery_type"] == "ANY":
                    pending.append(((was["child"], was.get("alias")), (now["children"][0], now.get("alias"))))
                continue
            if was.keys() != now.keys():
                return False
            pending.extend((was[key], now[key]) for key in was)
        elif isinstance(was, (list, tuple)) and isinstance(now, (list, tuple)):
            if len(was) != len(now):
                return False
            pending.extend(zip(was, now, strict=True))
        elif type(was) is not type(now) or was != now:
            return False
    return replaced == subqueries.keys()


def _stands_for(was: SyntaxNode, now: SyntaxNode) -> int | None:
    """The number of the parameter that ``now`` has where ``was`` has a subquery."""
    match was, now:
        case (
            {"class": "SUBQUERY", "subquery_type": "SCALAR"},
            {"class": "PARAMETER", "identifier": str() as number}
            | {"class": "CAST", "child": {"class": "PARAMETER", "identifier": str() as number}},
        ) if "alias" not in was and "alias" not in now and "try_cast" not in now:
            return int(number) if number.isdecimal() else None
        case (
            {"class": "SUBQUERY", "subquery_type": "ANY", "comparison_type": "COMPARE_EQUAL"},
            {"type": "COMPARE_IN_LIST", "children": [_, {"class": "PARAMETER", "identifier": str() as number}]},
        ):
            return int(number) if number.isdecimal() else None
        case _:
            return None
