"""Placements: the members on which a vertex has to run.

An initialised meta-supplier returns one of these; the plan builder turns the placements of all vertices into
participants. Member pruning works for any DAG because of them: a source that declares the partitions it needs does not
bring the other members into the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unrestricted:
    """The vertex does not say.

    With inbound edges it runs on every participant that its input can reach. Without, it is a source of unknown extent:
    it runs on **every member**, and a job that is restricted to some partitions refuses it instead of losing the rows
    of the members that are left out.
    """


@dataclass(frozen=True, slots=True)
class OnPartitions:
    """The vertex reads these partitions, each at its owner.

    Attributes:
        group: Affinity group of the partitions.
        by_member: Partition ids by owner; the owners become participants. Empty: the vertex runs nowhere.
    """

    group: str
    by_member: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class OnMembers:
    """The vertex runs on exactly these members, which become participants.

    Attributes:
        members: Member ids without duplicates.
        parallelism_max: Most processors on each; 1 with one member means one processor in the whole job.
    """

    members: tuple[str, ...]
    parallelism_max: int


@dataclass(frozen=True, slots=True)
class OnCoordinator:
    """One processor in the whole job, on the member that coordinates it: result sinks and final stages."""


@dataclass(frozen=True, slots=True)
class Anywhere:
    """One processor in the whole job, on any participant, whatever parallelism the vertex asks for.

    For sources whose data are everywhere or nowhere, such as a replicated table or a Python list.

    It runs on the coordinator when that takes part anyway, otherwise on the first participant, so that it adds no
    member to the job.
    """


@dataclass(frozen=True, slots=True)
class Spread:
    """The vertex distributes its parts over the members that take part anyway, or over all members.

    It runs on all members only if no other source determines the participants.

    For sources whose data every member can reach, such as files on shared storage. It runs on at most as many members
    as it has parts, on the coordinator first, with no more processors on each than parts.

    Attributes:
        parts: The parts to assign; ``get`` assigns part *i* to member *i* modulo their number.
    """

    parts: int


Placement = Unrestricted | OnPartitions | OnMembers | OnCoordinator | Anywhere | Spread
