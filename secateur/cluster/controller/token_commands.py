"""Tokens at the controller: made, listed and revoked."""

from __future__ import annotations

import secrets
import time
from typing import Final

from msgspec.structs import replace

from secateur.cluster.controller.cluster_state import ClusterState
from secateur.errors import AuthenticationError, LimitExceededError, ProgrammingError
from secateur.planner.system.tables import SCHEMA, SYSTEM_TABLES
from secateur.protocol import tokens
from secateur.protocol.message import Acknowledged
from secateur.protocol.tokens import Privilege, TableGrant, TokenRole
from secateur.wire import Reply, Request

_TOKENS_MAX: Final = 1000
_TOKEN_BYTES: Final = 32
_NAME_CHARS_MAX: Final = 200
_TABLES_MAX: Final = 1000
_CLAIMS_MAX: Final = 32
_CLAIM_CHARS_MAX: Final = 1000
_LIFETIME_S_MAX: Final = 100 * 366 * 86400
"""A calendar that ends in the year 9999 has to show the end."""


class TokenCommands:
    """Carries out what concerns tokens. Lives on the controller's event loop.

    Args:
        state: Keeps the tokens, and takes them to the members.
        has_token: Whether the cluster asks clients for a token.
    """

    def __init__(self, state: ClusterState, *, has_token: bool) -> None:
        self._state = state
        self._has_token = has_token

    async def create(self, request: Request[tokens.CreateToken]) -> Reply[tokens.NewToken]:
        """Make a token, which every member that stays accepts by then.

        Raises:
            ProgrammingError: The cluster asks for no token.
            AuthenticationError: The role is above that of the one who asks.
            UnknownTableError: There is no table of a name.
            LimitExceededError: There are too many.
        """
        asked, peer = request.message, request.peer
        if not self._has_token:
            raise ProgrammingError(
                "this cluster was started with token='' and lets everybody in: a token would keep nobody out; start it"
                " with a token"
            )
        if asked.role > peer.token_role:
            raise AuthenticationError(
                f"a token with the role {asked.role.title!r} is made by a token with that role or a higher one, and"
                f" this connection has the role {peer.token_role.title!r}; nothing was done"
            )
        kept = [token for token in self._state.access.tokens if not token.is_over]
        if len(kept) >= _TOKENS_MAX:
            raise LimitExceededError(
                f"there are {_TOKENS_MAX} tokens: revoke those that nobody uses", limit="tokens_max"
            )
        made = tokens.NewToken(secrets.token_hex(4), secrets.token_urlsafe(_TOKEN_BYTES))
        granted = tokens.GrantedToken(
            made.id,
            asked.role,
            tokens.digest_of(made.token),
            asked.name[:_NAME_CHARS_MAX],
            time.time(),
            _checked(asked, self._state),
            asked.principal[:_NAME_CHARS_MAX],
            tuple(dict.fromkeys(role.casefold() for role in asked.roles)),
            asked.claims,
            asked.expires,
        )
        self._state.access = replace(self._state.access, tokens=(*kept, granted))
        await self._state.all_reached()
        return Reply(made)

    def listed(self, _: Request[tokens.ListTokens]) -> Reply[tokens.KnownTokens]:
        """The tokens, oldest first."""
        return Reply(
            tokens.KnownTokens(
                tuple(replace(token, digest=b"") for token in self._state.access.tokens if not token.is_over)
            )
        )

    async def revoke(self, request: Request[tokens.RevokeToken]) -> Reply[Acknowledged]:
        """Make a token invalid, at every member that stays.

        Raises:
            ProgrammingError: There is no such token.
        """
        token_id = request.message.id
        kept = tuple(token for token in self._state.access.tokens if token.id != token_id)
        if len(kept) == len(self._state.access.tokens):
            known = ", ".join(token.id for token in kept)
            raise ProgrammingError(
                f"there is no token {token_id!r}" + (f"; there are {known}" if known else ", nor any other")
            )
        self._state.access = replace(self._state.access, tokens=kept)
        await self._state.all_reached()
        return Reply(Acknowledged())


def _checked(asked: tokens.CreateToken, state: ClusterState) -> tuple[TableGrant, ...]:
    """The grants of a token that is to be made."""
    grants = tuple(TableGrant(grant.table.casefold(), grant.privilege) for grant in asked.tables)
    if len(grants) > _TABLES_MAX:
        raise LimitExceededError(f"a token may be for {_TABLES_MAX} tables, or for all", limit="token_tables_max")
    if (grants or asked.roles) and asked.role > TokenRole.WRITE:
        raise ProgrammingError("a token for some tables has the role 'read' or 'write' in each of them")
    for role in asked.roles:
        if state.access.role(role) is None:
            built_in = ", ".join(repr(each.title) for each in TokenRole)
            made = ", ".join(each.name for each in state.access.roles) or "nothing yet"
            raise ProgrammingError(f"role={role!r}: it is one of {built_in}, or what CREATE ROLE has made: {made}")
    if len(asked.claims) > _CLAIMS_MAX or any(len(text) > _CLAIM_CHARS_MAX for text in asked.claims.values()):
        raise LimitExceededError(
            f"a token has at most {_CLAIMS_MAX} claims of {_CLAIM_CHARS_MAX} characters each", limit="token_claims_max"
        )
    if asked.expires is not None and not 0 < asked.expires - time.time() <= _LIFETIME_S_MAX:  # nor is it a NaN
        raise ProgrammingError("the token would have expired already, or in more than a century: choose another time")
    for grant in grants:
        schema, _, name = grant.table.rpartition(".")
        if schema != SCHEMA or name not in SYSTEM_TABLES:
            state.catalog.relation(grant.table)
        elif grant.privilege is not Privilege.SELECT:
            raise ProgrammingError(f"nobody changes the system table {grant.table!r}: it may be read")
    return grants
