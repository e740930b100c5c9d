"""Answers clients and other members that cannot reach the controller: topology, ranges and plans."""

from __future__ import annotations

from collections.abc import Callable

from secateur.cluster.member.statements.statements import StatementRunner
from secateur.cluster.member.tables.table_directory import TableDirectory
from secateur.cluster.metadata_pages import owner_pages, range_pages
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.catalog import GetOwnerPages, GetOwners, GetRanges, OwnerPages, RangePages, TopologyKnown
from secateur.protocol.query import GetPlan, PlanAnswer
from secateur.wire import Reply, Request


class KnownMetadata:
    """Answers ``get_owners``, ``get_owner_pages``, ``get_ranges`` and ``get_plan``. Lives on the member's event loop.

    Args:
        owners: Gives the newest topology that the member acts on.
        places: The definitions of its tables.
        statements: Has the plans that it has run.
    """

    def __init__(self, owners: Callable[[], Topology], places: TableDirectory, statements: StatementRunner) -> None:
        self._owners = owners
        self._places = places
        self._statements = statements

    def topology(self, _: Request[GetOwners]) -> Reply[TopologyKnown]:
        """The owners of the newest topology."""
        return Reply(TopologyKnown(self._owners().outline))

    def owner_pages(self, request: Request[GetOwnerPages]) -> Reply[OwnerPages]:
        """Owners of a large group."""
        return Reply(owner_pages(self._owners(), request.message))

    def ranges(self, request: Request[GetRanges]) -> Reply[RangePages]:
        """Ranges of a table."""
        return Reply(range_pages(self._places.tables(), request.message))

    def plan(self, request: Request[GetPlan]) -> Reply[PlanAnswer]:
        """A plan that this member has run, for another one that has not."""
        return Reply(PlanAnswer(self._statements.kept_plan(request.message.plan_id).encoded()))
