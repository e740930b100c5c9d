"""Connects the processors of one member with each other and with other members: queues, lanes and exchanges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.dag.edge import AllToOne, Broadcast, FanOut, Isolated, Partitioned, Unicast, UnmatchedRows
from secateur.engine.exchange.exchange import (
    ExchangeLink,
    ExchangeReceiver,
    ExchangeSender,
    Post,
    RemoteLane,
    SharedEncoder,
    encode_batches,
)
from secateur.engine.exchange.inbox import Inbox
from secateur.engine.exchange.key_routing import (
    ROUTING_PARTITIONS,
    routing_partition_of_name,
    routing_partitions,
    scheme_partitions,
    table_partitions,
)
from secateur.engine.exchange.outbox import EdgeWriter, EndOfEdge, Lane, LaneGroup, Route, partitioned_route
from secateur.engine.execution_plan.member_plan import DestinationMember, EdgePlan, MemberPlan
from secateur.engine.runtime.tasklet import TaskletInput
from secateur.engine.scheduler import Scheduler
from secateur.errors import DagError, Error


class Wiring:
    """The connections of one execution.

    Attributes:
        senders: The sending ends, by edge index and destination member.
        receivers: The receiving ends, by edge index and origin member.
    """

    def __init__(
        self,
        plan: MemberPlan,
        *,
        frame_bytes_max: int,
        post: Post,
        scheduler: Scheduler,
        fail: Callable[[Error], None],
        sender_ended: Callable[[], None],
    ) -> None:
        self._member = plan.member
        parallelism = {vertex.name: vertex.local_parallelism for vertex in plan.vertices}
        self._edges = [edge for edge in plan.job.edges if edge.source in parallelism or edge.destination in parallelism]
        self._inboxes: dict[int, list[Inbox]] = {}
        self.senders: dict[tuple[int, str], ExchangeSender] = {}
        self.receivers: dict[tuple[int, str], ExchangeReceiver] = {}
        job, member = plan.job.job_id, plan.member
        for edge in self._edges:
            producers = parallelism.get(edge.source, 0)
            is_target = edge.consumers_on(member) > 0
            remote_origins = [origin for origin in edge.origins_of(member) if origin != member] if is_target else []
            # An input that no row can reach exists nevertheless: the processor gets a call for its end.
            producer_count = producers + len(remote_origins) if is_target else 0
            consumers = parallelism.get(edge.destination, 0)
            by_origin: dict[str, Inbox] = {}
            if edge.is_apart and is_target:
                if consumers != 1 or sum(other.destination == edge.destination for other in self._edges) > 1:
                    raise DagError(
                        f"edge {edge.name} keeps members apart: it has to be the only one into {edge.destination!r}, of"
                        " which a member runs one processor"
                    )
                by_origin = {
                    origin: Inbox(edge.config, producers if origin == member else 1)
                    for origin in edge.origins_of(member)
                }
                self._inboxes[edge.index] = list(by_origin.values())
            else:
                self._inboxes[edge.index] = [Inbox(edge.config, producer_count) for _ in range(consumers)]
            if is_target:
                for origin in remote_origins:
                    inboxes = [by_origin[origin]] if edge.is_apart else self._inboxes[edge.index]
                    link = ExchangeLink(job, member, edge.index, origin, edge.config, post)
                    self.receivers[edge.index, origin] = ExchangeReceiver(link, inboxes)
            if producers and edge.is_distributed:
                encode = SharedEncoder() if isinstance(edge.routing, Broadcast) else encode_batches
                for target in edge.targets:
                    if target.member != member:
                        self.senders[edge.index, target.member] = ExchangeSender(
                            ExchangeLink(job, member, edge.index, target.member, edge.config, post),
                            producer_count=producers,
                            frame_bytes_max=frame_bytes_max,
                            scheduler=scheduler,
                            fail=fail,
                            ended=sender_ended,
                            encode=encode,
                        )

    def inputs(self, vertex: str, index: int) -> list[TaskletInput]:
        """The inbound edges of the processor with that local index."""
        found: list[TaskletInput] = []
        for edge in self._edges:
            if edge.destination == vertex:
                inboxes = self._inboxes[edge.index]
                # An edge that keeps members apart is the only one, and its ordinals are those of the members.
                own = inboxes if edge.is_apart else [inboxes[index]]
                found += [
                    TaskletInput(edge.destination_ordinal + position, edge.priority, inbox)
                    for position, inbox in enumerate(own)
                ]
        return found

    def writers(self, vertex: str, index: int) -> list[EdgeWriter]:
        """The outbound edges of the processor with that local index, by source ordinal."""
        edges = sorted((e for e in self._edges if e.source == vertex), key=lambda e: e.source_ordinal)
        return [self._writer(edge, index) for edge in edges]

    def clear(self) -> None:
        """Drop everything: the job has ended."""
        for inboxes in self._inboxes.values():
            for inbox in inboxes:
                inbox.clear()
        for sender in self.senders.values():
            sender.clear()

    def _writer(self, edge: EdgePlan, index: int) -> EdgeWriter:
        ends: list[EndOfEdge] = list(self._inboxes_here(edge)) if edge.consumers_on(self._member) else []
        ends += [sender for (edge_index, _), sender in self.senders.items() if edge_index == edge.index]
        return EdgeWriter(self._route(edge, index), ends)

    def _inboxes_here(self, edge: EdgePlan) -> Sequence[Inbox]:
        """Return the inboxes for rows produced on this member, one for each consumer here."""
        inboxes = self._inboxes[edge.index]
        return [inboxes[edge.origins_of(self._member).index(self._member)]] if edge.is_apart else inboxes

    def _targets(self, edge: EdgePlan) -> Sequence[DestinationMember]:
        return (
            edge.targets if edge.is_distributed else (DestinationMember(self._member, edge.consumers_on(self._member)),)
        )

    def _lane(self, edge: EdgePlan, member: str, consumer: int) -> Lane:
        if member == self._member:
            return self._inboxes_here(edge)[consumer]
        return RemoteLane(self.senders[edge.index, member], (consumer,))

    def _route(self, edge: EdgePlan, index: int) -> Route:
        targets = self._targets(edge)
        match edge.routing:
            case Unicast():
                return _to_all(
                    [
                        LaneGroup(
                            [self._lane(edge, t.member, c) for t in targets for c in range(t.consumers)], first=index
                        )
                    ]
                )
            case FanOut():
                return _to_all(
                    [
                        LaneGroup([self._lane(edge, t.member, c) for c in range(t.consumers)], first=index)
                        for t in targets
                    ]
                )
            case Isolated():
                return _to_all([LaneGroup([self._lane(edge, self._member, index % targets[0].consumers)])])
            case AllToOne(key):
                (target,) = targets
                return _to_all(
                    [LaneGroup([self._lane(edge, target.member, routing_partition_of_name(key) % target.consumers)])]
                )
            case Broadcast():
                return _to_all([LaneGroup([lane]) for lane in self._broadcast_lanes(edge, targets)])
            case Partitioned(columns, scheme, table, unmatched):
                places = [(t.member, c) for t in targets for c in range(t.consumers)]
                groups = [LaneGroup([self._lane(edge, member, consumer)]) for member, consumer in places]
                at_home = next((lane for lane, (member, _) in enumerate(places) if member == self._member), 0)
                owners = (
                    edge.owners if edge.is_distributed else np.zeros(_partition_count(edge.routing), dtype=np.uint16)
                )
                lanes = _lane_of_partition(owners, targets, unmatched)
                if scheme is None:
                    return partitioned_route(
                        groups, lanes, partial(routing_partitions, columns=columns, edge=edge.name), at_home
                    )
                if table is not None:
                    return partitioned_route(
                        groups,
                        lanes,
                        partial(table_partitions, columns=columns, scheme=scheme, edge=edge.name),
                        at_home,
                    )
                return partitioned_route(
                    groups,
                    lanes,
                    partial(scheme_partitions, columns=columns, scheme=scheme, unmatched=unmatched, edge=edge.name),
                    at_home,
                )
            case _:
                assert_never(edge.routing)

    def _broadcast_lanes(self, edge: EdgePlan, targets: Sequence[DestinationMember]) -> list[Lane]:
        """Return one lane for each local consumer, and one for all consumers of each other member.

        The network thus carries a batch once.
        """
        lanes: list[Lane] = list(self._inboxes[edge.index]) if edge.consumers_on(self._member) else []
        lanes += [
            RemoteLane(self.senders[edge.index, t.member], tuple(range(t.consumers)))
            for t in targets
            if t.member != self._member
        ]
        return lanes


def _to_all(groups: Sequence[LaneGroup]) -> Route:
    if len(groups) == 1:
        only = groups[0]
        return lambda batch: ((only, batch),)

    def route(batch: pa.RecordBatch) -> list[tuple[LaneGroup, pa.RecordBatch]]:
        return [(group, batch) for group in groups]

    return route


def _partition_count(routing: Partitioned) -> int:
    return ROUTING_PARTITIONS if routing.scheme is None else routing.scheme.partition_count


def _lane_of_partition(
    owners: npt.NDArray[np.uint16], targets: Sequence[DestinationMember], unmatched: UnmatchedRows
) -> npt.NDArray[np.uint16]:
    """Return the lane of each routing partition and, at the end, of the rows without one.

    A target's partitions are distributed over its consumers in turn.

    The number of lanes in place of a lane says that rows are dropped. Every member computes the same.
    """
    lanes = np.full(len(owners) + 1, sum(target.consumers for target in targets), dtype=np.uint16)
    if unmatched is not UnmatchedRows.DROP:
        lanes[-1] = 0
    first_lane = 0
    for position, target in enumerate(targets):
        mine = np.flatnonzero(owners == position)
        lanes[mine] = first_lane + np.arange(len(mine)) % target.consumers
        first_lane += target.consumers
    return lanes if len(lanes) else np.zeros(1, dtype=np.uint16)  # of a table without ranges yet
