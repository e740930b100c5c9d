"""Assigns owners to the partitions of new ranges without moving any other partition.

Adding a range must not move a row, so no rebalancing happens: each new partition goes to the member that has the
fewest, and so do its backups. Ranges that were dropped keep their ids but have no weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from secateur.errors import InterfaceError
from secateur.partitioning.topology.topology import Ownership


def grow(
    previous: Ownership,
    partitions: int,
    members: Sequence[str],
    live: npt.NDArray[np.int32],
    *,
    nodes: Sequence[str] = (),
) -> Ownership:
    """The ownership of an affinity group after its ranges have changed.

    Args:
        previous: The owners so far.
        partitions: How many ids there are now, at least as many as before.
        members: The members that are alive, in an order that everybody agrees on.
        live: The ids that can hold rows, ascending; the others do not count as load.
        nodes: The node of each member; empty if that does not matter.

    Returns:
        ``previous`` with further columns. The new partitions are assigned to the members with the fewest primaries:
        those differ by at most one between members if they did before. A backup is never on its primary, and on another
        node if there is one. Where fewer
        members live than there are copies, members that have gone fill up, as after a loss.
        Cost: a few microseconds per new partition and member.

    Raises:
        InterfaceError: There are fewer partitions than before, or no members.
    """
    if partitions < previous.partitions or not members:
        raise InterfaceError(f"{previous.partitions} partitions cannot grow to {partitions} on {len(members)} members")
    names = (*previous.members, *(member for member in members if member not in previous.members))
    kept = live[live < previous.partitions]
    primaries = np.bincount(previous.owners[0, kept], minlength=len(names)).tolist()
    backups = np.bincount(previous.owners[1:, kept].ravel(), minlength=len(names)).tolist()
    alive = [names.index(member) for member in members]
    gone = [index for index in range(len(names)) if index not in alive]
    node_of = dict(zip(alive, nodes or members, strict=True))
    pairs = np.zeros((len(names), len(names)), dtype=np.int64).tolist()
    added = np.empty((previous.replicas, partitions - previous.partitions), dtype=np.uint16)
    for column in range(added.shape[1]):
        primary = min(alive, key=lambda index: (primaries[index], index))
        primaries[primary] += 1
        shared = pairs[primary]
        # Load decides, then how many partitions the two members share already, so that a lost member's load spreads.
        others = sorted(
            (index for index in alive if index != primary), key=lambda index: (backups[index], shared[index], index)
        )
        chosen = _on_other_nodes(primary, others, node_of)
        for row, backup in enumerate([*chosen, *gone][: previous.replicas - 1], start=1):
            added[row, column] = backup
            backups[backup] += 1
            shared[backup] += 1
        added[0, column] = primary
    return Ownership.of(names, np.hstack([previous.owners, added]))


def _on_other_nodes(primary: int, others: Sequence[int], node_of: Mapping[int, str]) -> list[int]:
    """``others`` in their order, but those first whose node has no copy yet."""
    used, first, rest = {node_of[primary]}, list[int](), list[int]()
    for index in others:
        (rest if node_of[index] in used else first).append(index)
        used.add(node_of[index])
    return first + rest


def same_holders(left: Ownership, right: Ownership, partitions: npt.NDArray[np.int32]) -> bool:
    """Whether two ownerships agree on the primary and the ordered backups of each of some partitions."""
    if left.replicas != right.replicas:
        return False
    number = {member: index for index, member in enumerate(dict.fromkeys((*left.members, *right.members)))}
    ours, theirs = (
        np.array([number[member] for member in ownership.members], dtype=np.int64)[
            ownership.owners[:, partitions].astype(np.int64)
        ]
        for ownership in (left, right)
    )
    return bool(np.array_equal(ours, theirs))
