"""Whether a member has more copies in a later topology than in an earlier one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from secateur.partitioning.topology.topology import Ownership, Topology


def gains_copies(before: Topology, after: Topology, member_id: str) -> bool:
    """Whether a member holds a copy of a partition, at any rank, that it did not hold before.

    Cost: about 1 ms for 100,000 partitions whose owners have changed, nothing for others.
    """
    for group, ownership in after.owners.items():
        earlier = before.owners.get(group)
        if earlier == ownership or member_id not in ownership.members:
            continue
        held = _held(ownership, member_id)
        if earlier is not None and member_id in earlier.members:
            both = min(ownership.partitions, earlier.partitions)
            held[:both] &= ~_held(earlier, member_id)[:both]
        if held.any():
            return True
    return False


def _held(ownership: Ownership, member_id: str) -> npt.NDArray[np.bool_]:
    held: npt.NDArray[np.bool_] = (ownership.owners == ownership.members.index(member_id)).any(axis=0)
    return held
