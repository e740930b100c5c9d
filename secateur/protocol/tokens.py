"""Tokens with a role: how they are made, listed and revoked, and what servers keep of them."""

from __future__ import annotations

import hashlib
from enum import IntEnum

import msgspec

from secateur.protocol.message import Acknowledged, Message

__all__ = [
    "CreateToken",
    "GrantedToken",
    "KnownTokens",
    "ListTokens",
    "NewToken",
    "RevokeToken",
    "TokenRole",
    "digest_of",
]


class TokenRole(IntEnum):
    """What the bearer of a token may do; each role may do what those before it may."""

    READ = 1
    """Queries, snapshots, BACKUP; the lists of statements, jobs and members."""
    WRITE = 2
    """Change rows, and load them."""
    ADMIN = 3
    """Define tables and views, end the statements of others, set what holds for the cluster, make tokens."""
    CODE = 4
    """Submit jobs and connectors. Their Python functions run in the members: nothing is out of reach."""

    @property
    def title(self) -> str:
        return self.name.lower()


class GrantedToken(msgspec.Struct, frozen=True):
    """A token that is valid.

    Attributes:
        id: Names it; no secret.
        role: What its bearer may do.
        digest: :func:`digest_of` the token, which itself is kept nowhere.
        name: What it is for, in words of the one who made it.
        created: Seconds since the epoch.
    """

    id: str
    role: TokenRole
    digest: bytes = b""
    name: str = ""
    created: float = 0.0

    def __repr__(self) -> str:
        return f"GrantedToken(id={self.id!r}, role={self.role.title!r}, name={self.name!r})"


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
    """Make a token. It is valid everywhere when the answer comes."""

    role: TokenRole
    name: str = ""


class ListTokens(Message[KnownTokens], frozen=True):
    """The tokens that are valid, without their digests."""


class RevokeToken(Message[Acknowledged], frozen=True):
    """Make a token invalid. It is so everywhere when the answer comes, and its connections are closed."""

    id: str


def digest_of(token: str) -> bytes:
    """SHA-256 of a token. Tokens are 256 random bits, so there is nothing that a slower digest would protect."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
