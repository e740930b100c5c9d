"""Tokens for some tables only: what such a token was granted, and what its bearer may therefore do.

A grant is on a name: of a table, a view, an external table, or a system table such as ``secateur.tables``. To read a
view, its bearer needs the view and everything beneath it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from secateur.errors import AuthenticationError


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
