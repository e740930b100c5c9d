"""Connects the processors of one member with each other and with other members: queues, lanes and exchanges."""

from __future__ import annotations

from collections.abc import Callable

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
from secateur.engine.exchange.outbox import EdgeWriter
from secateur.engine.exchange.routes import Destination, route_of
from secateur.engine.execution_plan.member_plan import EdgePlan, MemberPlan
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
        self._destinations: dict[int, list[Destination]] = {}
        self.senders: dict[tuple[int, str], ExchangeSender] = {}
        self.receivers: dict[tuple[int, str], ExchangeReceiver] = {}
        job, member = plan.job.job_id, plan.member
        for edge in self._edges:
            producers = parallelism.get(edge.source, 0)
            is_target = member in [target.member for target in edge.targets]
            origins = edge.origins_of(member) if is_target else ()
            producers_from = [producers if origin == member else 1 for origin in origins]
            consumers = parallelism.get(edge.destination, 0)
            if edge.routing.apart and is_target:
                if consumers != 1 or sum(other.destination == edge.destination for other in self._edges) > 1:
                    raise DagError(
                        f"edge {edge.name} keeps members apart: it has to be the only one into {edge.destination!r}, of"
                        " which a member runs one processor"
                    )
                inboxes = [Inbox(edge.config, count) for count in producers_from]
            else:
                # An input that no row can reach exists nevertheless: the processor gets a call for its end.
                inboxes = [Inbox(edge.config, sum(producers_from)) for _ in range(consumers)]
            self._inboxes[edge.index] = inboxes
            fed = {origin: [inboxes[at]] if edge.routing.apart else inboxes for at, origin in enumerate(origins)}
            for origin in origins:
                if origin != member:
                    link = ExchangeLink(job, member, edge.index, origin, edge.config, post)
                    self.receivers[edge.index, origin] = ExchangeReceiver(link, fed[origin])
            if producers:
                encode = SharedEncoder() if edge.routing.is_copied else encode_batches
                reached = self._destinations[edge.index] = []
                for target in edge.targets_of(member):
                    if target.member == member:
                        reached.append(Destination(fed[member], fed[member], fed[member], is_here=True))
                    else:
                        sender = self.senders[edge.index, target.member] = ExchangeSender(
                            ExchangeLink(job, member, edge.index, target.member, edge.config, post),
                            producer_count=producers,
                            frame_bytes_max=frame_bytes_max,
                            scheduler=scheduler,
                            fail=fail,
                            ended=sender_ended,
                            encode=encode,
                        )
                        each = [RemoteLane(sender, (consumer,)) for consumer in range(target.consumers)]
                        together = RemoteLane(sender, tuple(range(target.consumers)))
                        reached.append(Destination(each, [together], [sender], is_here=False))

    def inputs(self, vertex: str, index: int) -> list[TaskletInput]:
        """The inbound edges of the processor with that local index."""
        found: list[TaskletInput] = []
        for edge in self._edges:
            if edge.destination == vertex:
                inboxes = self._inboxes[edge.index]
                # An edge that keeps members apart is the only one, and its ordinals are those of the members.
                own = inboxes if edge.routing.apart else [inboxes[index]]
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
        reached = self._destinations[edge.index]
        # The owners are indexes into all targets.
        owners = edge.owners if len(reached) == len(edge.targets) else edge.owners[:0]
        route = route_of(edge.routing, reached, owners=owners, producer=index, edge=edge.name)
        return EdgeWriter(route, [end for destination in reached for end in destination.ends])
