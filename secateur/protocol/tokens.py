"""Tokens with a role: how they are made, listed and revoked, and what servers keep of them."""

from __future__ import annotations

import hashlib

import msgspec

from secateur.protocol.message import Acknowledged, Message
from secateur.protocol.table_rights import TableGrant, TokenRole, grants_text


class GrantedToken(msgspec.Struct, frozen=True):
    """A token that is valid.

    Attributes:
        id: Names it; no secret.
        role: The role of its bearer.
        digest: :func:`digest_of` the token, which itself is kept nowhere.
        name: Its purpose, in the words of the one who made it.
        created: Seconds since the epoch.
        tables: The only tables for which it is good; empty for all. The highest role in them is ``role``.
    """

    id: str
    role: TokenRole
    digest: bytes = b""
    name: str = ""
    created: float = 0.0
    tables: tuple[TableGrant, ...] = ()

    @property
    def title(self) -> str:
        """The purpose of the token: ``read``, or ``read on orders; write on carts``."""
        return grants_text(self.tables) or self.role.title

    def __repr__(self) -> str:
        return f"GrantedToken(id={self.id!r}, role={self.title!r}, name={self.name!r})"


class NewToken(msgspec.Struct, frozen=True):
    """A token that was made.

    Attributes:
        id: Names it, for :class:`RevokeToken`.
        token: The secret itself, which is told this once.
    """

    id: str
    token: str

    def __repr__(self) -> str:
        return f"NewToken(id={self.id!r})"


class KnownTokens(msgspec.Struct, frozen=True):
    """All tokens that are valid beside that of the cluster. Members read it out of the record of the controller."""

    tokens: tuple[GrantedToken, ...] = ()


class CreateToken(Message[NewToken], frozen=True):
    """Make a token. It is valid everywhere when the answer comes.

    Attributes:
        role: The role of its bearer.
        name: Its purpose.
        tables: The only tables for which it is good, with a role each; empty for all.
    """

    role: TokenRole
    name: str = ""
    tables: tuple[TableGrant, ...] = ()


class ListTokens(Message[KnownTokens], frozen=True):
    """The tokens that are valid, without their digests."""


class RevokeToken(Message[Acknowledged], frozen=True):
    """Make a token invalid. It is so everywhere when the answer comes, and its connections are closed."""

    id: str


def digest_of(token: str) -> bytes:
    """SHA-256 of a token. Tokens are 256 random bits, so there is nothing that a slower digest would protect."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
