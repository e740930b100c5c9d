"""A table with copies, and whether its members have all of them and an even share."""

from __future__ import annotations

from eventually import eventually

import secateur
from secateur.cluster import Cluster

__all__ = ["balanced", "create", "healed", "missing"]


def create(conn: secateur.Connection, name: str, *, partitions: int = 12, backups: int = 1) -> None:
    """Make a table of two numbers."""
    conn.execute(
        f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS {partitions}"
        f" BACKUPS {backups}"
    )


def missing(conn: secateur.Connection) -> int:
    """How many copies the partition lacks that lacks most."""
    ((copies,),) = conn.execute("SELECT max(copies_missing) FROM secateur.partitions").fetchall()
    return int(copies)


def healed(conn: secateur.Connection) -> None:
    """Return when no copy is missing."""
    eventually(lambda: missing(conn) == 0, "copies are missing still")


def balanced(cluster: Cluster) -> bool:
    """Whether each member is the primary of nearly as many partitions as every other."""
    owned = [member.partitions_primary for member in cluster.members() if member.is_alive]
    return max(owned) - min(owned) <= 2  # of two affinity groups
