"""Statements that stand where a query may stand, written as queries.

DuckDB takes PIVOT, UNPIVOT, TABLE, DESCRIBE, SUMMARIZE and SHOW wherever it takes a query: behind CREATE VIEW AS and
INSERT INTO, in COPY, in a common table expression, beside UNION, in parentheses. PIVOT and UNPIVOT become the SELECT
that :mod:`~secateur.planner.binding.pivot` says, ``TABLE t`` becomes ``FROM t``, others ``FROM (DESCRIBE t)``, which
is a query as it is. All six words are reserved: without quotation marks they are no names, except behind AS or a point.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from secateur.planner.binding.pivot import say_pivot, say_unpivot
from secateur.planner.binding.table_query import say_table
from secateur.planner.dml.composed import Composed, Composer
from secateur.planner.dml.expressions import TextSpan
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import Token

_SAID: Final = {
    "TABLE": say_table,
    "PIVOT": say_pivot,
    "PIVOT_WIDER": say_pivot,
    "UNPIVOT": say_unpivot,
    "PIVOT_LONGER": say_unpivot,
}
_DESCRIPTIONS: Final = frozenset({"DESCRIBE", "DESC", "SUMMARIZE"})
_SHOWN: Final = _DESCRIPTIONS | {"SHOW"}
_WORD: Final = re.compile(r"\b(?:(?:UN)?PIVOT|DESC|TABLE\b|SUMMARIZE\b|SHOW\b)", re.IGNORECASE)
"""Found in every text with one of them."""
_QUERIES: Final = frozenset({"SELECT", "FROM", "VALUES", "WITH"})
_ROWS: Final = _QUERIES - {"WITH"}
_SET_OPERATORS: Final = frozenset({"UNION", "EXCEPT", "INTERSECT"})
_BEHIND_QUERIES: Final = ("RETURNING", "ON CONFLICT", "WITH NO DATA", "WITH DATA")
_BEFORE_TABLES: Final = frozenset({"FROM", "JOIN", ",", "USING"})


def as_queries(sql: str, tokens: Sequence[Token], parameters: Parameters) -> Composed | None:
    """Write the last of these statements inside of a statement as a query.

    Args:
        sql: The user's text.
        tokens: Those of the statement, with numbered parameters.
        parameters: As read from the same tokens.

    Returns:
        The statement with it, in which others may be left; None if there is none.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        NotSupportedError: The pivoted column has no values, or is an expression.
    """
    if _WORD.search(sql) is None:
        return None
    words = [_word(token) for token in tokens]
    at = next((at for at in reversed(range(len(words))) if _stands_for_query(words, at)), None)
    if at is None:
        return None
    end = _end(words, at)
    composer = Composer(sql, parameters)
    if at:
        composer.say(TextSpan(tokens[0].start, tokens[at].start))
    say = _SAID.get(words[at])
    if say is None:
        composer.say("FROM (", TextSpan(tokens[at].start, tokens[end - 1].end + 1), ")")
    else:
        say(TokenCursor(sql, tokens[at:end]), composer)
    if end < len(tokens):
        composer.say(" ", TextSpan(tokens[end].start, tokens[-1].end + 1))
    return composer.finish()


def _word(token: Token) -> str:
    """A token in upper case; nothing for a quoted name or a text."""
    return token.word


def _stands_for_query(words: Sequence[str], at: int) -> bool:
    word = words[at]
    if word not in _SAID and word not in _SHOWN:
        return False
    before = words[at - 1] if at else ""
    if word == "TABLE" and (before in _DESCRIPTIONS):
        return False  # DESCRIBE TABLE t
    if word == "DESC" and "ORDER" in _outside(words, at):
        return False  # a direction
    if not at:  # the statement itself
        return word in _SAID or (_end(words, at) < len(words))
    if words[0] == "CREATE" and "AS" not in words[:at]:
        return False  # a list of columns
    if before == "(":
        return word in _SAID or words[at - 2] not in _BEFORE_TABLES
    if before in _SET_OPERATORS or (
        before in ("ALL", "NAME") and not _SET_OPERATORS.isdisjoint(words[max(0, at - 4) : at])
    ):
        return True
    if before in _DESCRIPTIONS:
        return at == 1 or _stands_for_query(words, at - 1) or words[at - 2] == "("
    if before == "AS":
        return words[0] == "CREATE" and "AS" not in _outside(words, at - 1)
    scope = _outside(words, at)
    if before == ")" and scope[0] == "WITH":
        return _ROWS.isdisjoint(scope)
    return "INTO" in scope[:-1] and "INSERT" in scope and _ROWS.isdisjoint(scope)


def _outside(words: Sequence[str], at: int) -> list[str]:
    """The words before ``at`` that stand in the same parentheses."""
    found: list[str] = []
    depth = 0
    for word in reversed(words[:at]):
        depth += (word in (")", "]", "}")) - (word in ("(", "[", "{"))
        if depth < 0:
            break
        if not depth:
            found.append(word)
    return found[::-1] or [""]


def _end(words: Sequence[str], at: int) -> int:
    """The first word behind a statement that stands for a query."""
    is_of_query = words[at] in _SHOWN and at + 1 < len(words) and words[at + 1] in _QUERIES
    depth = 0
    for position in range(at, len(words)):
        word = words[position]
        depth += (word in ("(", "[", "{")) - (word in (")", "]", "}"))
        if depth < 0:
            return position
        if not depth and position > at:
            behind = " ".join(words[position : position + 3])
            if behind.startswith(_BEHIND_QUERIES) or (word in _SET_OPERATORS and not is_of_query):
                return position
    return len(words)
