"""The partitions of which a member is the primary, or has become it: functions of topologies."""

from __future__ import annotations

from typing import Any

import numpy as np

from secateur.partitioning.topology.topology import Ownership, Topology


def owned_by(member: str, topology: Topology, group: str) -> list[int]:
    """The partitions of an affinity group of which a member is the primary, ascending; those of dropped ranges too."""
    owners = topology.owners.get(group)
    found: list[int] = [] if owners is None else np.flatnonzero(_primary_of(owners, member)).tolist()
    return found


def taken_by(member: str, before: Topology, topology: Topology, group: str) -> list[int]:
    """Those of :func:`owned_by` of which it was not the primary before; none of a group that is new."""
    now, then = topology.owners.get(group), before.owners.get(group)
    if now is None or not before.version or (then is None and topology.version == before.version + 1):
        return []  # the group is new, and its partitions are empty
    mine = _primary_of(now, member)
    if then is not None:
        known = _primary_of(then, member)[: len(mine)]
        mine[: len(known)] &= ~known
    found: list[int] = np.flatnonzero(mine).tolist()
    return found


def _primary_of(owners: Ownership, member: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether a member is the primary of each partition."""
    if member not in owners.members:
        return np.zeros(owners.partitions, np.bool_)
    found: np.ndarray[Any, np.dtype[np.bool_]] = owners.owners[0] == owners.members.index(member)
    return found
