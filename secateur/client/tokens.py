"""The tokens of a cluster: made, listed and revoked while it runs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from secateur.errors import ProgrammingError
from secateur.protocol.message import Message
from secateur.protocol.tokens import (
    GRANT_WORDS,
    CreateToken,
    GrantedToken,
    ListTokens,
    NewToken,
    Privilege,
    RevokeToken,
    TableGrant,
    TokenRole,
)

_ROLES: Final = {role.title: role for role in TokenRole}
_ANY_NAME: Final = r'(?:"(?:[^"]|"")+"|[\w.]+)'
_NAME: Final = re.compile(r'("(?:[^"]|"")+")|([\w.]+)')
_WORD: Final = rf"(?:{'|'.join(GRANT_WORDS)})"
_CLAUSE: Final = re.compile(
    rf"(?P<words>{_WORD}(?:\s*,\s*{_WORD})*)\s+on\s+(?P<names>{_ANY_NAME}(?:\s*,\s*{_ANY_NAME})*)\s*(?:;\s*|$)",
    re.IGNORECASE,
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

    def create(
        self,
        role: str | Sequence[str],
        name: str = "",
        *,
        principal: str = "",
        claims: Mapping[str, str] | None = None,
        expires: float | timedelta | None = None,
    ) -> NewToken:
        """Make a token. Every member accepts it when this returns; costs one round trip to each.

        Args:
            role: ``"read"``, ``"write"``, ``"admin"`` or ``"code"``; each may do what those before it may. Or for some
                tables only: the name of a role that CREATE ROLE has made, or several, whose grants it has; or what it
                is granted itself, as ``"read on orders, items"`` or ``"read on orders; insert, update on carts"``.
                A table may be a view, whose tables it then needs as well, or a system table, as ``secateur.tables``;
                in double quotes if its name is no plain word.
            name: What it is for, in your words.
            principal: Whom its bearer acts for; ``secateur.tokens`` shows it.
            claims: What is known of its bearer, which row policies read: ``{"tenant": "C2"}`` is what
                ``session('tenant')`` stands for.
            expires: Seconds, or a timedelta, after which it ends; None for never.

        Returns:
            Its ``id``, for :meth:`revoke`, and the ``token`` itself, which nobody can look up later.

        Raises:
            ProgrammingError: There is no such role, or the cluster was started without a token.
            UnknownTableError: There is no such table.
            AuthenticationError: The role is above that of this connection, or that is below ``admin``.
            LimitExceededError: There are too many.
        """
        highest, tables, roles = _read_role(role)
        held = {name: str(value) for name, value in (claims or {}).items()}
        seconds = expires.total_seconds() if isinstance(expires, timedelta) else expires
        ends = None if seconds is None else time.time() + seconds
        made: NewToken = self._ask(CreateToken(highest, name, tables, principal, roles, held, ends))
        return made

    def list(self) -> tuple[GrantedToken, ...]:
        """The tokens that are valid, oldest first, without their secrets.

        Behind them stand JWTs that were revoked and have not ended, with the moment in ``revoked``.

        Raises:
            AuthenticationError: This connection has a role below ``admin``.
        """
        tokens: tuple[GrantedToken, ...] = self._ask(ListTokens()).tokens
        return tokens

    def revoke(self, id: str) -> GrantedToken:
        """Make a token invalid. No member accepts it when this returns, and its connections are closed.

        Args:
            id: As :meth:`create` returned it, or the token itself, as for a JWT: then all with its ``jti`` are invalid.

        Returns:
            The token, without its secret.

        Raises:
            ProgrammingError: There is no such token, or it is not valid anyway.
            AuthenticationError: This connection has a role below ``admin``.
            LimitExceededError: Too many JWTs were revoked and have not ended.
        """
        revoked: GrantedToken = self._ask(RevokeToken(id))
        return revoked


def _read_role(role: str | Sequence[str]) -> tuple[TokenRole, tuple[TableGrant, ...], tuple[str, ...]]:
    """Read ``write``, ``read on orders, items; write on carts``, or the names of roles that were made."""
    if not isinstance(role, str):
        roles = tuple(role)
        if not roles or not _ROLES.keys().isdisjoint(roles):  # none would be no limit
            raise ProgrammingError(
                f"role={role!r}: a list has names of roles that CREATE ROLE has made, at least one;"
                f" {', '.join(map(repr, _ROLES))} stands alone"
            )
        return TokenRole.WRITE, (), roles
    if role in _ROLES:
        return _ROLES[role], (), ()
    if role.isidentifier():
        return TokenRole.WRITE, (), (role,)
    grants = []
    rest = role.strip()
    while rest:
        clause = _CLAUSE.match(rest)
        if clause is None:
            raise ProgrammingError(
                f"role={role!r}: it is one of {', '.join(map(repr, _ROLES))}, a role that CREATE ROLE has made, or for"
                " some tables only as in 'read on orders, items; write on carts'"
            )
        for quoted, plain in _NAME.findall(clause["names"]):
            table = plain or quoted[1:-1].replace('""', '"')
            for word in clause["words"].lower().split(","):
                grants += [TableGrant(table, privilege) for privilege in GRANT_WORDS[word.strip()]]
        rest = rest[clause.end() :]
    if not grants:
        raise ProgrammingError(
            f"role={role!r}: it is one of {', '.join(map(repr, _ROLES))}, or a role that CREATE ROLE has made"
        )
    is_read = all(grant.privilege is Privilege.SELECT for grant in grants)
    return TokenRole.READ if is_read else TokenRole.WRITE, tuple(dict.fromkeys(grants)), ()
