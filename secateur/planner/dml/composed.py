"""Queries that are composed from pieces of the user's statement.

An UPDATE or MERGE has its parts in another order than a query for its rows needs. The query is a text of its own that
contains the user's pieces unchanged, with parameters numbered; it records the origin of each piece, so errors are shown
at their place in the user's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from secateur.errors import Error
from secateur.partitioning.types.sql_text import CLOCKS, folded
from secateur.planner.text.parameters import Parameters, read_parameters
from secateur.planner.text.positions import Piece, Spliced, located, splice
from secateur.planner.text.token_cursor import TextSpan
from secateur.planner.text.tokens import Token, TokenKind, tokenize

_T = TypeVar("_T")
_POSITION: Final = re.compile(r" \(line \d+, column \d+\)\n[^\n]*\n *(\^*)(\n.*)?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Composed:
    """A finished text.

    Attributes:
        sql: The user's text.
        spliced: It, with the origins of its pieces.
        parameters: Those of the user's statement.
    """

    sql: str
    spliced: Spliced
    parameters: Parameters

    @property
    def text(self) -> str:
        return self.spliced.sql

    def plan(self, plan: Callable[[str, Sequence[Token], Parameters], _T]) -> _T:
        """Pass the text to a planner of queries.

        Raises:
            Error: The statement is invalid; with its position in the user's text.
        """
        tokens, own = read_parameters(self.text, tokenize(self.text))
        whole = self.parameters
        if whole.clock is None and any(map(_calls_clock, tokens, tokens[1:])):
            whole = whole.with_clock()  # of a default, which is not in the user's text
        try:
            # A parameter may occur only in another query of the same statement, so the count of the whole statement
            # holds.
            own = replace(own, count=whole.count, names=whole.names).with_hidden_of(whole)
            return plan(self.text, tokens, own)
        except Error as error:
            raise self._relocated(error) from error.__cause__

    def _relocated(self, error: Error) -> Error:
        line, column = error.details.get("line"), error.details.get("column")
        if not isinstance(line, int) or not isinstance(column, int):
            return error
        offset = sum(len(text) + 1 for text in self.text.split("\n")[: line - 1]) + column - 1
        marked = _POSITION.search(error.message)
        message = error.message if marked is None else error.message[: marked.start()]
        others = {name: value for name, value in error.details.items() if name not in ("line", "column")}
        length, rest = (1, "") if marked is None else (len(marked[1]), marked[2] or "")
        placed = located(type(error), message, self.sql, self.spliced.origin(offset)[0], length, **others)
        return type(error)(placed.message + rest, **placed.details) if rest else placed


def _calls_clock(token: Token, behind: Token) -> bool:
    return token.kind is TokenKind.WORD and behind.word == "(" and folded(token.text) in CLOCKS


class Composer:
    """Puts a text together of pieces of another; a WITH clause comes first."""

    def __init__(self, sql: str, parameters: Parameters, ctes: TextSpan | None = None) -> None:
        self._sql = sql
        self._parameters = parameters
        self._numbered = [(start, end, f"${index + 1}") for start, end, index in parameters.spans]
        self._parts: list[str] = []
        self._pieces: list[Piece] = []
        self._length = 0
        if ctes is not None:
            self.say(ctes, " ")

    def say(self, *parts: str | TextSpan) -> Composer:
        """Add words of ours, and pieces of the user's."""
        for part in parts:
            if isinstance(part, TextSpan):
                self._quote(part)
            else:
                self._add(part)
        return self

    def finish(self) -> Composed:
        """The text so far."""
        pieces = tuple(self._pieces) or (Piece(0, 0, 0, True),)
        return Composed(self._sql, Spliced("".join(self._parts), pieces), self._parameters)

    def _quote(self, span: TextSpan) -> None:
        if span.start < span.end:
            made = splice(self._sql, span.start, span.end, self._numbered)
            # Words of ours behind a piece belong to its last character.
            self._pieces += (Piece(self._length + one.at, one.start, one.end - 1, True) for one in made.pieces)
            self._add(made.sql)
        # After a line comment, words of ours would belong to it.
        if "--" in self._sql[span.start : span.end]:
            self._add("\n")

    def _add(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
