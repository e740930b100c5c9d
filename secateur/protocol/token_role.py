"""The roles of tokens."""

from __future__ import annotations

from enum import IntEnum


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
