"""The tokens of a cluster: made, listed and revoked while it runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from secateur.errors import ProgrammingError
from secateur.protocol.message import Message
from secateur.protocol.tokens import CreateToken, GrantedToken, ListTokens, NewToken, RevokeToken, TableGrant, TokenRole

_ROLES: Final = {role.title: role for role in TokenRole}
_ANY_NAME: Final = r'(?:"(?:[^"]|"")+"|[\w.]+)'
_NAME: Final = re.compile(r'("(?:[^"]|"")+")|([\w.]+)')
_CLAUSE: Final = re.compile(
    rf"(?P<role>read|write)\s+on\s+(?P<names>{_ANY_NAME}(?:\s*,\s*{_ANY_NAME})*)\s*(?:;\s*|$)", re.IGNORECASE
)


class Tokens:
    """The tokens that a cluster accepts beside its own. Needs a token with the role ``admin``.

    docs/security.md says what the roles may do. The token that a cluster is started with has every role, is not listed
    here, and cannot be revoked.

    Args:
        ask: Sends a request to the controller and returns its reply.
    """

    def __init__(self, ask: Callable[[Message[Any]], Any]) -> None:
        self._ask = ask

    def create(self, role: str, name: str = "") -> NewToken:
        """Make a token. Every member accepts it when this returns; costs one round trip to each.

        Args:
            role: ``"read"``, ``"write"``, ``"admin"`` or ``"code"``; each may do what those before it may. Or for some
                tables only: ``"read on orders, items"``, ``"read on orders; write on carts"``. A name may be that of
                a view, whose tables it then needs as well, or of a system table, as ``secateur.tables``; in double
                quotes if it is no plain word.
            name: What it is for, in your words.

        Returns:
            Its ``id``, for :meth:`revoke`, and the ``token`` itself, which nobody can look up later.

        Raises:
            ProgrammingError: There is no such role, or the cluster was started without a token.
            UnknownTableError: There is no such table.
            AuthenticationError: The role is above that of this connection, or that is below ``admin``.
            LimitExceededError: There are too many.
        """
        highest, tables = _role_and_tables(role)
        made: NewToken = self._ask(CreateToken(highest, name, tables))
        return made

    def list(self) -> tuple[GrantedToken, ...]:
        """The tokens that are valid, oldest first, without their secrets.

        Raises:
            AuthenticationError: This connection has a role below ``admin``.
        """
        tokens: tuple[GrantedToken, ...] = self._ask(ListTokens()).tokens
        return tokens

    def revoke(self, id: str) -> None:
        """Make a token invalid. No member accepts it when this returns, and its connections are closed.

        Args:
            id: As :meth:`create` returned it and :meth:`list` shows it.

        Raises:
            ProgrammingError: There is no such token.
            AuthenticationError: This connection has a role below ``admin``.
        """
        self._ask(RevokeToken(id))


def _role_and_tables(text: str) -> tuple[TokenRole, tuple[TableGrant, ...]]:
    """Read ``write``, or ``read on orders, items; write on carts``."""
    if text in _ROLES:
        return _ROLES[text], ()
    grants = []
    rest = text.strip()
    while rest:
        clause = _CLAUSE.match(rest)
        if clause is None:
            raise ProgrammingError(
                f"role={text!r}: it is one of {', '.join(map(repr, _ROLES))}, or for some tables only as in"
                " 'read on orders, items; write on carts'"
            )
        for quoted, plain in _NAME.findall(clause["names"]):
            grants.append(TableGrant(plain or quoted[1:-1].replace('""', '"'), _ROLES[clause["role"].lower()]))
        rest = rest[clause.end() :]
    if not grants:
        raise ProgrammingError(f"role={text!r}: it is one of {', '.join(map(repr, _ROLES))}")
    return max(grant.role for grant in grants), tuple(grants)
