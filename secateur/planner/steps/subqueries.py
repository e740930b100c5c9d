"""The subqueries of a text that their values could replace: behind IN, and beside a comparison.

They are found among the tokens, because replacements are made in the user's own text. Whether such a place is what it
seems is not decided there: :mod:`secateur.planner.steps.materialize` uses it only where DuckDB's parser sees it too
(:func:`is_substituted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Self

from secateur.partitioning.types.sql_text import folded
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.syntax import Syntax, SyntaxNode, ctes_of, nodes_of, parse_query
from secateur.planner.text.tokens import Token
from secateur.protocol.query_parts import SubqueryUse

VALUES_MAX: Final[Mapping[SubqueryUse, int]] = MappingProxyType(
    {SubqueryUse.LIST: 10_000, SubqueryUse.VALUE: 1, SubqueryUse.KEYS: 2_000}
)
"""With more values than this a statement runs undivided: a longer list costs more to send than it can prune.

A list of 10,000 keys is hashed in milliseconds, and is as many keys as 1,250 partitions can tell apart before they
count as all of them. A statement runs as well without the keys of a join, and every one of these costs the client and
each member half a microsecond for each scan.
"""
_Mentions = tuple[tuple[str, int], ...]
"""Names in FROM, folded, each with its offset in the text."""


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
            is_whole = index + 1 == len(tokens) or tokens[index + 1].word in _ENDS
            nesting[-1][1].extend(inner if use is None else [Subquery(use, opening, index, is_whole, tuple(inner))])
    return tuple(found for _, inside in nesting for found in inside)


def _use(tokens: Sequence[Token], opening: int, closing: int) -> SubqueryUse | None:
    if not opening or tokens[opening + 1].word not in _QUERIES:
        return None
    before = tokens[opening - 1].word
    behind = tokens[closing + 1].word if closing + 1 < len(tokens) else None
    if before == "IN" or (before in ("ANY", "SOME") and opening > 1 and tokens[opening - 2].word in ("=", "==")):
        return SubqueryUse.LIST
    return SubqueryUse.VALUE if before in _LEADING or (before in _BEGINNINGS and behind in _COMPARISONS) else None


@dataclass(frozen=True, slots=True)
class _Definition:
    """One common table expression of the outermost WITH: its first and last token, and the names that it reads."""

    name: str
    first: int
    last: int
    references: _Mentions


@dataclass(frozen=True, slots=True)
class EnclosingCTEs:
    """The common table expressions of a statement.

    They say which of them must go with an extracted subquery, and which become unused. A name in FROM is first that of
    a common table expression and only then that of a table, so a subquery extracted without them would read another
    relation, or none.

    Attributes:
        keywords: The text between WITH and the first of them: ``RECURSIVE``, or nothing.
        outermost: Those of the whole statement, in order.
        elsewhere: The names of those that are defined inside of some part.
        references: The names that the statement reads from outside of ``outermost``.
    """

    keywords: str
    outermost: tuple[_Definition, ...]
    elsewhere: _Mentions
    references: _Mentions

    @classmethod
    def of(cls, text: str, tokens: Sequence[Token], parameters: Parameters) -> Self:
        """Find the common table expressions of a query."""
        if not any(token.word == "WITH" for token in tokens):
            return cls("", (), (), ())
        syntax = parse_query(text, tokens, parameters)
        places = dict(_places(tokens)) if tokens[0].word == "WITH" else {}
        outermost = []
        for name, body in ctes_of(syntax.node) if places else ():
            first, last = places[name]
            outermost.append(_Definition(name, first, last, _mentions(syntax, body)))
        elsewhere = []
        for node in nodes_of(syntax.node):
            if node is not syntax.node or not places:
                elsewhere += [(name, _inside(syntax, body)) for name, body in ctes_of(node)]
        behind = tokens[outermost[-1].last].end if outermost else -1
        references = tuple(reference for reference in _mentions(syntax, syntax.node) if reference[1] > behind)
        keywords = "RECURSIVE " if tokens[1].word == "RECURSIVE" and places else ""
        return cls(keywords, tuple(outermost), tuple(elsewhere), references)

    def needed_by(
        self, subquery: Syntax, opening: Token, closing: Token, position: int
    ) -> tuple[tuple[int, int], ...] | None:
        """The first and last tokens of the definitions that a subquery needs, directly or through others.

        Args:
            subquery: Its syntax tree.
            opening: The parenthesis in front of it.
            closing: The one behind it.
            position: The index of ``opening`` among the tokens.

        Returns:
            None when it may need some that cannot go with it: those of a part of the statement, or a part of WITH
            itself.
        """
        names = {name for name, _ in _mentions(subquery, subquery.node)}
        needed = self._closure(names)
        if needed and position < self.outermost[-1].last:
            return None
        if any(name in names and not opening.start < start < closing.end for name, start in self.elsewhere):
            return None
        return tuple((definition.first, definition.last) for definition in needed)

    def unneeded_without(self, spans: Sequence[tuple[int, int]]) -> frozenset[int]:
        """Return the indexes of those of ``outermost`` that are unused without these spans of the text."""

        def remain(references: _Mentions) -> set[str]:
            return {name for name, start in references if not any(first <= start < end for first, end in spans)}

        names = remain(self.references)
        unneeded = set(range(len(self.outermost)))
        for index in reversed(range(len(self.outermost))):
            if self.outermost[index].name in names:
                unneeded.discard(index)
                names |= remain(self.outermost[index].references)
        return frozenset(unneeded)

    def _closure(self, names: set[str]) -> list[_Definition]:
        """The definitions of these names, and of those that they read from; ``names`` grows by these."""
        needed = []
        for definition in reversed(self.outermost):
            if definition.name in names:
                names |= {name for name, _ in definition.references}
                needed.append(definition)
        return needed[::-1]

    def are_those_of(self, original: SyntaxNode, taken_out: SyntaxNode) -> bool:
        """Whether DuckDB's parse tree confirms that a subquery's definitions are those of its statement."""
        if not self.outermost:
            return True
        defined = _definitions(original)
        return all(defined.get(name) == definition for name, definition in _definitions(taken_out).items())

    def left_out(self, original: SyntaxNode, other: SyntaxNode, unneeded: Iterable[int]) -> SyntaxNode | None:
        """Return DuckDB's tree of the statement without some definitions.

        None when ``other``, which lacks them, still reads from such a name.
        """
        names = {self.outermost[index].name for index in unneeded}
        if not names:
            return original
        if any(folded(node.get("table_name", "")) in names for node in nodes_of(other)):
            return None
        kept = [entry for entry in original["cte_map"]["map"] if folded(entry["key"]) not in names]
        return {**original, "cte_map": {"map": kept} if kept else {}}


def _definitions(query: SyntaxNode) -> dict[str, Any]:
    return {entry["key"]: entry["value"] for entry in query["cte_map"].get("map", ())}


def _mentions(syntax: Syntax, root: SyntaxNode) -> _Mentions:
    return tuple(
        (folded(node["table_name"]), max(syntax.start(node), 0))
        for node in nodes_of(root)
        if node.get("type") == "BASE_TABLE"
    )


def _inside(syntax: Syntax, body: SyntaxNode) -> int:
    """An offset inside of a query."""
    return max(syntax.start(node) for node in nodes_of(body))


def _places(tokens: Sequence[Token]) -> Iterator[tuple[str, tuple[int, int]]]:
    """The definitions behind a WITH that begins a query: the name of each, folded, and its first and last token."""
    first = 2 if tokens[1].word == "RECURSIVE" else 1
    while True:
        last = _end_of(tokens, first)
        yield folded(tokens[first].text), (first, last)
        if last + 1 >= len(tokens) or tokens[last + 1].word != ",":
            return
        first = last + 2


def _end_of(tokens: Sequence[Token], first: int) -> int:
    """The closing parenthesis of ``name [(columns)] AS [[NOT] MATERIALIZED] ( query )``."""
    depth = 0
    behind_as = False
    for index in range(first, len(tokens)):
        match tokens[index].word:
            case "(":
                depth += 1
            case ")":
                depth -= 1
                if not depth and behind_as:
                    return index
            case "AS" if not depth:
                behind_as = True
            case _:
                pass
    return len(tokens) - 1


def is_substituted(original: SyntaxNode, other: SyntaxNode, subqueries: Mapping[int, SyntaxNode]) -> bool:
    """Whether ``other`` is ``original`` with parameters in place of subqueries.

    The planner puts parameters into the text of a statement where its tokens show a subquery. This check ensures that
    DuckDB sees it there: the trees of both texts must be the same except for these places, and each replaced part must
    be the tree of the subquery's own text.

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
