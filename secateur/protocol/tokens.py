"""Tokens: how they are made, listed and revoked, what servers keep of them, and what their bearers may do.

Tokens for some tables only: what such a token was granted, and what its bearer may therefore do.

A grant is on a name: of a table, a view, an external table, or a system table such as ``secateur.tables``. To read a
view, its bearer needs the view and everything beneath it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import msgspec

from secateur.errors import AuthenticationError
from secateur.protocol.message import Acknowledged, Message


class TokenRole(IntEnum):
    """The role of the bearer of a token; each role includes those before it."""

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


class TableGrant(NamedTuple):
    """A role in one table.

    Attributes:
        table: Its name, case-folded.
        role: READ, or WRITE, which contains it.
    """

    table: str
    role: TokenRole


def grants_text(grants: Sequence[TableGrant]) -> str:
    """Grants as they are asked for: ``read on items, orders; write on carts``."""
    clauses = []
    for role in (TokenRole.READ, TokenRole.WRITE):
        names = sorted(_written(grant.table) for grant in grants if grant.role is role)
        if names:
            clauses.append(f"{role.title} on {', '.join(names)}")
    return "; ".join(clauses)


@dataclass(frozen=True, slots=True)
class TableRights:
    """The rights of the bearer of a token for some tables. A bearer of any other token has no such object.

    Attributes:
        token_id: Names the token.
        text: Its grants, for people.
        readable: The case-folded names of the tables that it may read.
        writable: The names of the tables that it may change.
    """

    token_id: str
    text: str
    readable: frozenset[str]
    writable: frozenset[str]

    @classmethod
    def of(cls, token_id: str, grants: Sequence[TableGrant]) -> TableRights | None:
        """The rights of a token with these grants; None without any: it is for all tables."""
        if not grants:
            return None
        writable = frozenset(grant.table for grant in grants if grant.role is TokenRole.WRITE)
        return cls(token_id, grants_text(grants), writable | {grant.table for grant in grants}, writable)

    def check_reads(self, tables: Iterable[str]) -> None:
        """Refuse to read tables.

        Args:
            tables: Case-folded names. Cost: a tenth of a microsecond for a frozenset of a few.

        Raises:
            AuthenticationError: One of them was not granted.
        """
        missing = frozenset(tables) - self.readable
        if missing:
            raise self._refusal(TokenRole.READ, missing)

    def check_write(self, table: str) -> None:
        """Refuse to change a table.

        Args:
            table: Its name, in any case.

        Raises:
            AuthenticationError: It was not granted.
        """
        if table.casefold() not in self.writable:
            raise self._refusal(TokenRole.WRITE, (table.casefold(),))

    def refusal_of(self, what: str) -> AuthenticationError:
        """The error for what needs a token for all tables."""
        return AuthenticationError(
            f"{what} needs a token for all tables, and the token {self.token_id!r} of this connection has"
            f" {self.text!r}; nothing was done: ask who has a token with the role 'admin'"
        )

    def _refusal(self, role: TokenRole, tables: Iterable[str]) -> AuthenticationError:
        right = grants_text([TableGrant(table, role) for table in tables])
        return AuthenticationError(
            f"this needs a token with {right!r}, and the token {self.token_id!r} of this connection has {self.text!r};"
            f" nothing was done: who has a token with the role 'admin' can make one by tokens.create({right!r})"
        )


def _written(name: str) -> str:
    return name if all(part.isidentifier() for part in name.split(".")) else '"' + name.replace('"', '""') + '"'


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
