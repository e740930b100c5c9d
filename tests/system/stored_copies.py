"""What the members of an embedded cluster have in memory."""

from __future__ import annotations

from typing import Any

from eventually import eventually

from secateur.cluster import Cluster

__all__ = ["copies_of"]


def copies_of(cluster: Cluster, name: str) -> dict[int, list[dict[str, Any]]]:
    """The rows of each partition as each of its owners has them that is a member."""
    runtime: Any = cluster._runtime

    async def read() -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {}
        topology = runtime._controller._state.topology
        table = runtime._controller._state.catalog.table(name)
        for partition in range(table.partition_count):
            holders = topology.ownership(table.scheme.affinity_group()).holders(partition)
            for holder in filter(topology.has_member, holders):
                store = runtime._members[holder]._storage.store
                rows = store.partition(table.table_id, partition).snapshot().fold().table
                found.setdefault(partition, []).append(rows.to_pydict())
        return found

    # A replacement is a member of the cluster a moment before its start has returned.
    eventually(lambda: runtime._members.keys() >= set(runtime._controller._state.topology.member_ids))
    return runtime._loop.run(read())  # type: ignore[no-any-return]
