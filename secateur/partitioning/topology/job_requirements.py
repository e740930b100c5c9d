"""The partitions and members that a job requires, as far as they are known before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["JobRequirements"]


@dataclass(frozen=True, slots=True)
class JobRequirements:
    """The partitions and members without which a job cannot run; ``|`` unites two requirements.

    They choose the coordinator: a member that takes part anyway. The participants are determined when the job starts,
    by the placements of its vertices.

    Attributes:
        partitions: By table name or affinity group.
        members: Ids of the members that are named.
    """

    partitions: Mapping[str, frozenset[int]] = field(default_factory=dict)
    members: frozenset[str] = frozenset()

    def __or__(self, other: JobRequirements) -> JobRequirements:
        partitions = dict(self.partitions)
        for name, ids in other.partitions.items():
            partitions[name] = partitions.get(name, frozenset()) | ids
        return JobRequirements(partitions, self.members | other.members)

    def to_wire(self) -> list[Any]:
        """Plain data for msgpack; :meth:`from_wire` reads it back."""
        return [{name: sorted(ids) for name, ids in self.partitions.items()}, sorted(self.members)]

    @classmethod
    def from_wire(cls, data: list[Any]) -> JobRequirements:
        partitions, members = data
        needs = cls({str(name): frozenset(ids) for name, ids in partitions.items()}, frozenset(members))
        if not all(
            isinstance(partition, int) and partition >= 0 for ids in needs.partitions.values() for partition in ids
        ):
            raise ValueError("a partition id is an integer from 0")
        return needs
