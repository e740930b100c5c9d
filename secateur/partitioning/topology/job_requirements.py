"""The partitions and members that a job requires, as far as they are known before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec


class JobRequirements(msgspec.Struct, frozen=True, array_like=True):
    """The partitions and members without which a job cannot run; ``|`` unites two requirements.

    They choose the coordinator: a member that takes part anyway. The participants are determined when the job starts,
    by the placements of its vertices.

    Attributes:
        partitions: By table name or affinity group.
        members: Ids of the members that are named.
    """

    partitions: Mapping[str, frozenset[Annotated[int, msgspec.Meta(ge=0)]]] = {}
    members: frozenset[str] = frozenset()

    def __or__(self, other: JobRequirements) -> JobRequirements:
        partitions = dict(self.partitions)
        for name, ids in other.partitions.items():
            partitions[name] = partitions.get(name, frozenset()) | ids
        return JobRequirements(partitions, self.members | other.members)
