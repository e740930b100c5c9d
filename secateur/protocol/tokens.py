"""Tokens: how they are made, listed and revoked, and what servers keep of them.

What their bearers may do follows from them, from roles and from policies: :mod:`secateur.protocol.access`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

import msgspec

from secateur.partitioning.types.sql_text import quoted
from secateur.protocol.message import Message


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


class Privilege(StrEnum):
    """What a grant allows with the rows of a table."""

    SELECT = "select"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class TableGrant(NamedTuple):
    """A privilege on one table.

    Attributes:
        table: Its name, case-folded.
        privilege: The privilege.
    """

    table: str
    privilege: Privilege

    def sql(self, role: str) -> str:
        """The statement that gives it to a role."""
        return f"GRANT {self.privilege.upper()} ON {_written(self.table)} TO {_written(role)}"


GRANT_WORDS: Final[Mapping[str, tuple[Privilege, ...]]] = {
    TokenRole.READ.title: (Privilege.SELECT,),
    TokenRole.WRITE.title: tuple(Privilege),
    **{privilege.value: (privilege,) for privilege in Privilege},
}
"""The words by which privileges are asked for."""


SIGNED_CHARS_MAX: Final = 8192
"""The longest token that is looked at: a signed one has what it says in it."""


def grants_text(grants: Iterable[TableGrant]) -> str:
    """Grants as they are asked for: ``read on items, orders; write on carts``."""
    held: dict[str, set[Privilege]] = {}
    for grant in grants:
        held.setdefault(grant.table, set()).add(grant.privilege)
    tables: dict[str, list[str]] = {}
    for table, privileges in held.items():
        tables.setdefault(_privileges_text(privileges), []).append(_written(table))
    return "; ".join(f"{text} on {', '.join(sorted(tables[text]))}" for text in sorted(tables))


def _privileges_text(privileges: set[Privilege]) -> str:
    if len(privileges) == len(Privilege):
        return TokenRole.WRITE.title
    words = {Privilege.SELECT: TokenRole.READ.title}
    return ", ".join(words.get(each, each.value) for each in Privilege if each in privileges)


def _written(name: str) -> str:
    return name if all(part.isidentifier() for part in name.split(".")) else quoted(name)


class GrantedToken(msgspec.Struct, frozen=True):
    """A token that is valid.

    Attributes:
        id: Names it; no secret.
        role: What its bearer may do in the tables that it is good for.
        digest: :func:`digest_of` the token, which itself is kept nowhere; of a signed one, of what makes it unique.
        name: Its purpose, in the words of the one who made it.
        created: Seconds since the epoch; 0 for a signed one.
        tables: What it was granted itself.
        principal: Whom its bearer acts for; empty for nobody in particular.
        roles: The case-folded names of roles made by CREATE ROLE, whose grants it has.
        claims: What is known of its bearer, by name: ``session('tenant')`` is the one named ``tenant``.
        expires: Seconds since the epoch at which it ends; None for never.
        is_signed: Whether an issuer of one's own has signed it, and no cluster made it: then it is in no record, until
            it is revoked.
        revoked: When a signed one was revoked; None while it is valid.
    """

    id: str
    role: TokenRole
    digest: bytes = b""
    name: str = ""
    created: float = 0.0
    tables: tuple[TableGrant, ...] = ()
    principal: str = ""
    roles: tuple[str, ...] = ()
    claims: Mapping[str, str] = {}
    expires: float | None = None
    is_signed: bool = False
    revoked: float | None = None

    @property
    def is_limited(self) -> bool:
        """Whether it is good for what was granted alone, to itself or to its roles; else it is for all tables.

        A signed one is also where it has no role: its issuer says who its bearer is, and not what that one may do.
        """
        return bool(self.tables or self.roles) or self.is_signed

    @property
    def is_over(self) -> bool:
        """Whether it has ended, by the clock of this machine."""
        return self.expires is not None and self.expires <= time.time()

    @property
    def is_owner(self) -> bool:
        """Whether its bearer owns the cluster, and with it all rows, as an owner of PostgreSQL's tables does."""
        return self.role >= TokenRole.ADMIN and not self.is_limited

    @property
    def tenant(self) -> str:
        """Whom its statements are for: its claim ``tenant``, else its principal, else itself."""
        return self.claims.get("tenant") or self.principal or self.id

    @property
    def title(self) -> str:
        """The purpose of the token: ``read``, ``reader``, or ``read on orders; write on carts``."""
        granted = "; ".join(filter(None, (", ".join(self.roles), grants_text(self.tables))))
        return granted or ("no role" if self.is_signed else self.role.title)

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
    """Tokens without their digests."""

    tokens: tuple[GrantedToken, ...] = ()


class CreateToken(Message[NewToken], frozen=True):
    """Make a token. It is valid everywhere when the answer comes.

    Attributes:
        role: The role of its bearer.
        name: Its purpose.
        tables: What it is good for; nothing here and in ``roles`` for all tables.
        principal: As of :class:`GrantedToken`, and so are the following.
        roles: Names of roles.
        claims: Claims by their names.
        expires: When it ends.
    """

    role: TokenRole
    name: str = ""
    tables: tuple[TableGrant, ...] = ()
    principal: str = ""
    roles: tuple[str, ...] = ()
    claims: Mapping[str, str] = {}
    expires: float | None = None


class ListTokens(Message[KnownTokens], frozen=True):
    """The tokens that are valid, and signed ones that were revoked and have not ended, without their digests."""


class RevokeToken(Message[GrantedToken], frozen=True):
    """Make a token invalid. It is so everywhere when the answer comes, and its connections are closed.

    Attributes:
        id: Its id, or the token itself, as a signed one is named.
    """

    id: str


def digest_of(token: str) -> bytes:
    """SHA-256 of a token. Tokens are 256 random bits, so there is nothing that a slower digest would protect."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
