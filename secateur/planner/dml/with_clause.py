"""Common table expressions before a statement that changes rows: ``WITH q AS (...) DELETE FROM t ...``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from secateur.planner.dml.expressions import TextSpan
from secateur.planner.text.tokens import Token, TokenKind

_VERBS: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})


def split_with(tokens: Sequence[Token]) -> tuple[TextSpan | None, Sequence[Token]]:
    """Split the WITH clause from a statement that changes rows.

    Returns None and all tokens for any other statement.
    """
    if tokens[0].text.upper() != "WITH":
        return None, tokens
    depth = 0
    for position, token in enumerate(tokens):
        depth += (token.word == "(") - (token.word == ")")
        closes = position and tokens[position - 1].word == ")"
        if closes and not depth and token.text.upper() in _VERBS and token.kind is not TokenKind.QUOTED:
            return TextSpan(tokens[0].start, tokens[position - 1].end + 1), tokens[position:]
    return None, tokens
