"""``session('tenant')``: a claim of whoever executes a statement, as the server has verified it.

A claim is a hidden parameter of the statement, behind those of the user and the lists of its text, with its value from
the token of the connection; NULL where the token has no such claim. So a plan is one for all tenants, and prunes by a
claim as by any other parameter. Members compare the value with the token before they read a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from secateur.errors import SqlSyntaxError
from secateur.planner.text.positions import Splice, located
from secateur.planner.text.tokens import Token, TokenKind

FUNCTION: Final = "SESSION"
_CALL: Final = re.compile(r"\bsession\b", re.IGNORECASE)


class ClaimCall(NamedTuple):
    """A call of the function: the name of the claim, and its place in the text."""

    claim: str
    start: int
    end: int


def claims_in(sql: str, tokens: Sequence[Token]) -> list[ClaimCall]:
    """The claims that a text reads, in its order.

    Raises:
        SqlSyntaxError: The function has another argument than one text.
    """
    found = []
    for place, token in enumerate(tokens[:-1]):
        # ``x.session(...)`` is the function of a schema, or the method of a value.
        is_part = place > 0 and tokens[place - 1].word == "."
        if token.word != FUNCTION or tokens[place + 1].word != "(" or is_part:
            continue
        argument = tokens[place + 2] if place + 2 < len(tokens) else token
        closing = tokens[place + 3] if place + 3 < len(tokens) else token
        if argument.kind is not TokenKind.STRING or closing.word != ")":
            message = "session(...) takes the name of a claim as a text, as in session('tenant')"
            raise located(SqlSyntaxError, message, sql, token.start, token.end - token.start + 1)
        found.append(ClaimCall(argument.text, token.start, closing.end + 1))
    return found


def claim_splices(sql: str, tokens: Sequence[Token], places: Mapping[str, int]) -> Iterator[Splice]:
    """The claims of a text as parameters, by the index of each claim's; NULL for one that nobody has."""
    if not reads_claims(sql):
        return
    for call in claims_in(sql, tokens):
        yield call.start, call.end, claim_text(call.claim, places)


def claim_text(claim: str, places: Mapping[str, int]) -> str:
    """A claim in the text of a statement: its parameter, or NULL for one that its reader does not have."""
    place = places.get(claim)
    return "CAST(NULL AS VARCHAR)" if place is None else f"${place + 1}"


def reads_claims(sql: str) -> bool:
    """Whether a text may read claims."""
    return _CALL.search(sql) is not None
