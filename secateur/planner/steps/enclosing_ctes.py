"""The common table expressions around extracted subqueries: which must go with them, and which become unused.

A name in FROM is first that of a common table expression and only then that of a table, so a subquery extracted without
them would read another relation, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from sqlglot import Token, TokenType, exp

from secateur.partitioning.tables.identifier import folded
from secateur.planner.text.dialect import parse_query
from secateur.planner.text.duckdb_parse import DuckDBParse

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
    def of(cls, text: str, tokens: Sequence[Token]) -> Self:
        """Find the common table expressions of a query.

        Args:
            text: The user's whole text.
            tokens: Those of the query.
        """
        if not any(token.token_type is TokenType.WITH for token in tokens):
            return cls("", (), (), ())
        tree = parse_query(text, tokens)
        index_at = {token.start: index for index, token in enumerate(tokens)}
        with_ = tree.args.get("with_") if tokens[0].token_type is TokenType.WITH else None
        outermost = []
        elsewhere = []
        for cte in tree.find_all(exp.CTE):
            start = int(cte.args["alias"].this.meta["start"])
            if cte.parent is with_:
                first = index_at[start]
                outermost.append(_Definition(folded(cte.alias), first, _end_of(tokens, first), _mentions(cte.this)))
            else:
                elsewhere.append((folded(cte.alias), start))
        outermost.sort(key=lambda definition: definition.first)
        behind = tokens[outermost[-1].last].end if outermost else -1
        recursive = isinstance(with_, exp.With) and with_.args.get("recursive")
        references = tuple(reference for reference in _mentions(tree) if reference[1] > behind)
        return cls("RECURSIVE " if recursive else "", tuple(outermost), tuple(elsewhere), references)

    def needed_by(
        self, subquery: exp.Expr, opening: Token, closing: Token, position: int
    ) -> tuple[tuple[int, int], ...] | None:
        """The first and last tokens of the definitions that a subquery needs, directly or through others.

        Args:
            subquery: Its tree.
            opening: The parenthesis in front of it.
            closing: The one behind it.
            position: The index of ``opening`` among the tokens.

        Returns:
            None when it may need some that cannot go with it: those of a part of the statement, or a part of WITH
            itself.
        """
        names = {name for name, _ in _mentions(subquery)}
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

    def are_those_of(self, original: DuckDBParse, taken_out: DuckDBParse) -> bool:
        """Whether DuckDB's parse tree confirms that a subquery's definitions are those of its statement."""
        if not self.outermost:
            return True
        defined = _definitions(original)
        return all(defined.get(name) == definition for name, definition in _definitions(taken_out).items())

    def left_out(self, original: DuckDBParse, other: DuckDBParse, unneeded: Iterable[int]) -> DuckDBParse | None:
        """Return DuckDB's tree of the statement without some definitions.

        None when ``other``, which lacks them, still reads from such a name.
        """
        names = {self.outermost[index].name for index in unneeded}
        if not names:
            return original
        if names & other.base_tables():
            return None
        kept = [entry for entry in original.tree["cte_map"]["map"] if folded(entry["key"]) not in names]
        return DuckDBParse({**original.tree, "cte_map": {"map": kept}})


def _definitions(reading: DuckDBParse) -> dict[str, Any]:
    cte_map: Mapping[str, Any] = reading.tree.get("cte_map", {})
    return {entry["key"]: entry["value"] for entry in cte_map.get("map", ())}


def _mentions(tree: exp.Expr) -> _Mentions:
    return tuple(
        (folded(table.name), int(table.this.meta.get("start", 0)))
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier)
    )


def _end_of(tokens: Sequence[Token], first: int) -> int:
    """The closing parenthesis of ``name [(columns)] AS [[NOT] MATERIALIZED] ( query )``."""
    depth = 0
    behind_as = False
    for index in range(first, len(tokens)):
        match tokens[index].token_type:
            case TokenType.L_PAREN:
                depth += 1
            case TokenType.R_PAREN:
                depth -= 1
                if not depth and behind_as:
                    return index
            case TokenType.ALIAS if not depth:
                behind_as = True
            case _:
                pass
    return len(tokens) - 1
