"""The connections of a member to the controller and to the other members."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from secateur.cluster.peers import ControllerRequests, Peers
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import peer_at
from secateur.errors import Error
from secateur.partitioning.tables.table import ExternalTable
from secateur.protocol.catalog import GetExternalTable
from secateur.protocol.membership import ReportCopyLost
from secateur.protocol.message import Role
from secateur.protocol.query import DescribeStatement, ReadSystemTable, StatementDescription, StatementEntry
from secateur.wire import decode_table


class MemberConnections:
    """Those whom a member asks, and what it asks the controller. Lives on the member's event loop.

    Args:
        member_id: The member.
        settings: The settings of the cluster.
        controller_address: ``host:port`` of the controller.
        on_broken: Called with the id of a member that has not left, when one-way messages to it may be lost.

    Attributes:
        controller: The controller.
        patient: The controller, which is asked again for a while.
        peers: The other members.
    """

    def __init__(
        self,
        member_id: str,
        settings: ClusterSettings,
        controller_address: str,
        on_broken: Callable[[str, Error], None],
    ) -> None:
        host, _, port = controller_address.rpartition(":")
        self.controller = peer_at(host, int(port), settings, name=member_id, role=Role.MEMBER)
        self.patient = ControllerRequests(self.controller)
        self.peers = Peers(member_id, Role.MEMBER, settings, on_broken)

    async def system_table(self, name: str) -> pa.Table:
        """The rows of a system table."""
        answer = await self.patient.request(ReadSystemTable(name))
        return decode_table(answer.payload, ranges=False)

    async def external_table(self, table_id: int) -> ExternalTable:
        """An external table by its id."""
        return (await self.patient.request(GetExternalTable(table_id))).message.table

    async def describe_statement(self, entry: StatementEntry) -> StatementDescription:
        """The text of a statement that has ended, and how it is pruned."""
        return (await self.controller.request(DescribeStatement(entry))).message

    async def report_out_of_sync(self, table_id: int, partition: int, member: str) -> None:
        """Have the cluster count a member out as a holder of a partition."""
        await self.patient.request(ReportCopyLost(table_id, partition, member))

    async def close(self) -> None:
        """Close every connection."""
        await self.peers.close()
        await self.controller.close()
