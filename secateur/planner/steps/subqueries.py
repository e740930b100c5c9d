"""Finds the subqueries of a text that their values could replace: behind IN, and beside a comparison.

They are found among the tokens, because replacements are made in the user's own text. Whether such a place is what it
seems is not decided here: :mod:`secateur.planner.steps.materialize` uses it only where DuckDB's parser sees it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from secateur.planner.text.tokens import Token
from secateur.protocol.steps import SubqueryUse

VALUES_MAX: Final[Mapping[SubqueryUse, int]] = MappingProxyType(
    {SubqueryUse.LIST: 10_000, SubqueryUse.VALUE: 1, SubqueryUse.KEYS: 2_000}
)
"""With more values than this a statement runs undivided: a longer list costs more to send than it can prune.

A list of 10,000 keys is hashed in milliseconds, and is as many keys as 1,250 partitions can tell apart before they
count as all of them. A statement runs as well without the keys of a join, and every one of these costs the client and
each member half a microsecond for each scan.
"""


@dataclass(frozen=True, slots=True)
class Subquery:
    """A subquery in parentheses.

    Attributes:
        use: The use that the statement makes of it.
        opening: The index of the opening parenthesis among the tokens.
        closing: The index of the closing one.
        is_whole: Whether it is all of its side of a comparison; False where it may be part of an expression.
        inner: The subqueries inside of it that stand in such places themselves, outermost only.
    """

    use: SubqueryUse
    opening: int
    closing: int
    is_whole: bool
    inner: tuple[Subquery, ...]


_QUERIES: Final = frozenset({"SELECT", "WITH", "FROM"})
_COMPARISONS: Final = frozenset({"=", "==", "<", "<=", ">", ">="})
# A value follows: that of BETWEEN, behind AND the second one.
_LEADING: Final = _COMPARISONS | {"BETWEEN", "AND"}
_ENDS: Final = _COMPARISONS | {"AND", "OR", ")", "GROUP", "ORDER", "LIMIT", "HAVING"}
# These precede the left side of a comparison.
_BEGINNINGS: Final = frozenset({"WHERE", "ON", "OR", "("})


def find_subqueries(tokens: Sequence[Token]) -> tuple[Subquery, ...]:
    """The outermost subqueries in such places, in the order of the text. Cost: linear in the tokens."""
    # One entry for each open parenthesis, and one for the text around all: its index, and what was found inside.
    nesting: list[tuple[int, list[Subquery]]] = [(-1, [])]
    for index, token in enumerate(tokens):
        if token.word == "(":
            nesting.append((index, []))
        elif token.word == ")" and len(nesting) > 1:
            opening, inner = nesting.pop()
            use = _use(tokens, opening, index)
            nesting[-1][1].extend(
                inner if use is None else [Subquery(use, opening, index, _is_whole(tokens, index), tuple(inner))]
            )
    return tuple(found for _, inside in nesting for found in inside)


def _use(tokens: Sequence[Token], opening: int, closing: int) -> SubqueryUse | None:
    if not opening or tokens[opening + 1].word not in _QUERIES:
        return None
    before = tokens[opening - 1].word
    behind = tokens[closing + 1].word if closing + 1 < len(tokens) else None
    if before == "IN" or (before in ("ANY", "SOME") and opening > 1 and tokens[opening - 2].word in ("=", "==")):
        return SubqueryUse.LIST
    return SubqueryUse.VALUE if before in _LEADING or (before in _BEGINNINGS and behind in _COMPARISONS) else None


def _is_whole(tokens: Sequence[Token], closing: int) -> bool:
    return closing + 1 == len(tokens) or tokens[closing + 1].word in _ENDS
