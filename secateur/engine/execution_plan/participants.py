"""Member pruning: from the partitions that a job requires to the members that take part.

``JobConfig.required_partitions`` names the partitions: every SELECT fills it, and so may whoever submits a DAG. Their
owners take part, and a source that needs more than the job allows is refused, so no owner of rows that it would read is
left out. Where it is None, what the sources of the DAG declare in their placements stands in for it.

Source: the job partition pruning design of Hazelcast Jet, its "SQL-oriented" and its "generic" approach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from secateur.dag.dag import FrozenDAG
from secateur.dag.placement import Anywhere, OnCoordinator, OnMembers, OnPartitions, Placement, Spread, Unrestricted
from secateur.errors import DagError, TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.job_description import JobConfig

_SHOWN = 5


def choose_participants(
    dag: FrozenDAG,
    placements: Mapping[str, Placement],
    config: JobConfig,
    topology: Topology,
    coordinator: str,
    table: Callable[[str], TableDef],
) -> tuple[str, ...]:
    """The members that take part.

    Args:
        dag: The DAG.
        placements: Where each vertex has to run, by its name.
        config: The arguments of the job.
        topology: Members and owners.
        coordinator: The member that coordinates. It takes part only if something runs there.
        table: Finds a table's description, for required partitions that are given by table name.

    Returns:
        Member ids in topology order; at least one, since a job whose sources need nothing may still have a result to
        give: then it runs on the coordinator.

    Raises:
        DagError: A source needs more than the job is restricted to, a member is not in the cluster, or a partition does
            not exist.
        TopologyChangedError: The topology does not know a required table.
    """
    chosen = {member for edge in dag.edges for member in edge.reach.named}
    for name, placement in placements.items():
        match placement:
            case OnMembers(members):
                chosen.update(members)
            case OnCoordinator():
                chosen.add(coordinator)
            case OnPartitions() | Unrestricted() | Anywhere() | Spread():
                pass
            case _:
                assert_never(placement)
        if isinstance(placement, OnPartitions) and config.required_partitions is None:
            chosen.update(placement.by_member)
        if isinstance(placement, Unrestricted) and not dag.inbound[name] and config.required_partitions is None:
            chosen.update(topology.member_ids)
    if config.required_partitions is None and not _sources_choose(dag, placements):
        parts = max((placement.parts for placement in placements.values() if isinstance(placement, Spread)), default=0)
        chosen.update(sorted(topology.member_ids, key=coordinator.__ne__)[:parts])
    if config.required_partitions is not None:
        required = _required_by_group(config.required_partitions, topology, table)
        for group, partitions in required.items():
            if partitions:
                chosen.update(topology.ownership(group).owners_of(tuple(partitions)))
        if config.member_pruning:
            _check_sources(dag, placements, required)
    unknown = chosen - set(topology.member_ids)
    if unknown:
        raise DagError(
            f"the job names the member {min(unknown)!r}, which is not in the cluster; it has"
            f" {', '.join(topology.member_ids)}"
        )
    if not config.member_pruning:
        return topology.member_ids
    return tuple(member for member in topology.member_ids if member in chosen) or (coordinator,)


def _sources_choose(dag: FrozenDAG, placements: Mapping[str, Placement]) -> bool:
    """Whether a source determines the participants."""
    return any(
        isinstance(placement, OnPartitions | OnMembers) and not dag.inbound[name]
        for name, placement in placements.items()
    )


def _required_by_group(
    required: Mapping[str, frozenset[int]], topology: Topology, table: Callable[[str], TableDef]
) -> dict[str, frozenset[int]]:
    by_group: dict[str, frozenset[int]] = {}
    for key, partitions in required.items():
        group = key if key in topology.owners else table(key).scheme.affinity_group()
        if group not in topology.owners:
            raise TopologyChangedError(
                f"topology version {topology.version} has no owners for the partitions of {key!r} that the job"
                " requires; try again"
            )
        count = topology.owners[group].partitions
        if partitions and max(partitions) >= count:
            beyond = min(partition for partition in partitions if partition >= count)
            raise DagError(f"JobConfig.required_partitions[{key!r}] has partition {beyond}, but there are {count}")
        by_group[group] = by_group.get(group, frozenset()) | partitions
    return by_group


def _check_sources(dag: FrozenDAG, placements: Mapping[str, Placement], required: Mapping[str, frozenset[int]]) -> None:
    """Refuse an unrestricted scan in a restricted job.

    It would read only the participants' rows, and silently lose the others.
    """
    for name, placement in placements.items():
        if isinstance(placement, Unrestricted) and not dag.inbound[name]:
            raise DagError(
                f"vertex {name!r} is a source that does not say which partitions it needs, but the job is restricted to"
                " some: rows on the other members would be lost. Give it a placement (OnPartitions, OnMembers,"
                " Anywhere), or remove JobConfig.required_partitions"
            )
        if isinstance(placement, OnPartitions):
            allowed = required.get(placement.group, frozenset())
            if not all(map(allowed.issuperset, placement.by_member.values())):
                needed = {partition for partitions in placement.by_member.values() for partition in partitions}
                missing = sorted(needed - allowed)
                shown = ", ".join(map(str, missing[:_SHOWN])) + (", ..." if len(missing) > _SHOWN else "")
                raise DagError(
                    f"vertex {name!r} reads {len(needed)} partitions, but {len(missing)} of them are not in"
                    f" JobConfig.required_partitions ({shown}): their rows would be lost. Require them too, or restrict"
                    " the source"
                )
