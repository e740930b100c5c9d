"""The common table expressions around extracted subqueries: which must go with them, and which become unused.

A name in FROM is first that of a common table expression and only then that of a table, so a subquery extracted without
them would read another relation, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from secateur.partitioning.tables.identifier import folded
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.syntax import Syntax, SyntaxNode, ctes_of, nodes_of, parse_query
from secateur.planner.text.tokens import Token

_Mentions = tuple[tuple[str, int], ...]
"""Names in FROM, folded, each with its offset in the text."""


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
        """Find the common table expressions of a query.

        Args:
            text: The user's whole text.
            tokens: Those of the query.
            parameters: As read from them.
        """
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
