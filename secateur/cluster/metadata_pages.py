"""The ranges of a large table for clients that ask for those of some keys, at the controller and at members."""

from __future__ import annotations

from collections.abc import Iterable

from secateur.errors import TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.catalog import GetOwnerPages, GetRanges, OwnerPages, RangePages


def range_pages(tables: Iterable[TableDef], asked: GetRanges) -> RangePages:
    """The pages with the ranges of the keys that a client asks for.

    Args:
        tables: The tables of this process.
        asked: What the client asks for.

    Raises:
        TopologyChangedError: No table here has the scheme of that name: the table was dropped, or has other ranges.

    Cost: linear in the ranges sent, of which there is a bound; those of the table do not matter.
    """
    for table in tables:
        if table.scheme.reference == asked.reference:
            return RangePages(table.scheme.pages(asked.wanted))
    raise TopologyChangedError("the table has other ranges by now, or is gone: plan the statement again")


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
