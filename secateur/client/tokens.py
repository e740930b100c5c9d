"""The tokens of a cluster: made, listed and revoked while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from secateur.errors import ProgrammingError
from secateur.protocol.message import Message
from secateur.protocol.tokens import CreateToken, GrantedToken, ListTokens, NewToken, RevokeToken, TokenRole

__all__ = ["Tokens"]

_ROLES = {role.title: role for role in TokenRole}


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
            role: ``"read"``, ``"write"``, ``"admin"`` or ``"code"``; each may do what those before it may.
            name: What it is for, in your words.

        Returns:
            Its ``id``, for :meth:`revoke`, and the ``token`` itself, which nobody can look up later.

        Raises:
            ProgrammingError: There is no such role, or the cluster was started without a token.
            AuthenticationError: The role is above that of this connection, or that is below ``admin``.
            LimitExceededError: There are too many.
        """
        if role not in _ROLES:
            raise ProgrammingError(f"role={role!r}: it is one of {', '.join(map(repr, _ROLES))}")
        made: NewToken = self._ask(CreateToken(_ROLES[role], name))
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
