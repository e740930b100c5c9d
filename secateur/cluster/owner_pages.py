"""The owners of a large group for clients that ask for those of some partitions, at the controller and at members."""

from __future__ import annotations

from secateur.errors import TopologyChangedError
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.catalog import GetOwnerPages, OwnerPages


def owner_pages(topology: Topology, asked: GetOwnerPages) -> OwnerPages:
    """The pages of owners that a client asks for.

    Raises:
        TopologyChangedError: No group of this topology has the primaries that the client asks about.

    Cost: linear in the pages sent, and in the number of groups.
    """
    for ownership in topology.owners.values():
        if ownership.outline.digest == asked.digest:
            return OwnerPages(ownership.pages(asked.pages))
    raise TopologyChangedError(
        f"no partitions have these owners in topology {topology.version}: fetch the topology",
        topology_version=topology.version,
    )
