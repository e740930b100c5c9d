"""Routes: from a batch of one producer to the lanes of its consumers, for each routing.

What else there is to know of a routing is in ``secateur.dag.edge``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.dag.edge import (
    ROUTING_PARTITIONS,
    AllToOne,
    Broadcast,
    FanOut,
    Isolated,
    Partitioned,
    Routing,
    Unicast,
    UnmatchedRows,
)
from secateur.engine.exchange.key_routing import routing_partitions, scheme_partitions, table_partitions
from secateur.engine.exchange.outbox import EndOfEdge, Lane, LaneGroup, Route

_TAKE: Final = pc.get_function("take")
_UNCHECKED: Final = pc.TakeOptions(boundscheck=False)
_COMPARED_LANES_MAX: Final = 16
"""Up to here a comparison of all rows with each lane (0.4 ns a row and lane) beats sorting them by lane (8 ns a row, by
radix).
"""

_BLOCK_ROWS: Final = 1 << 15
"""The intermediate arrays for so many rows stay in the second-level cache, and in memory that the allocator reuses."""


@dataclass(slots=True)
class Destination:
    """The consumers of an edge on one member.

    Attributes:
        each: The lane to each consumer.
        together: Lanes that lead to all consumers; over the network it is one, which carries a batch once.
        ends: What is told of the end of each producer.
        is_here: Whether it is the member of the producers.
    """

    each: Sequence[Lane]
    together: Sequence[Lane]
    ends: Sequence[EndOfEdge]
    is_here: bool


def route_of(
    routing: Routing,
    destinations: Sequence[Destination],
    *,
    owners: npt.NDArray[np.uint16],
    producer: int,
    edge: str,
) -> Route:
    """The route of the rows that one producer makes for an edge.

    Args:
        routing: That of the edge.
        destinations: Each member that may get rows of the producer; at least one, in an order that all members share.
        owners: The owner of each partition as an index into ``destinations``; empty if any may own it.
        producer: The local index of the producer.
        edge: Name of the edge, for messages.
    """
    match routing:
        case Unicast():
            groups = [LaneGroup([lane for to in destinations for lane in to.each], first=producer)]
        case FanOut():
            groups = [LaneGroup(to.each, first=producer) for to in destinations]
        case Broadcast():
            groups = [LaneGroup([lane]) for to in destinations for lane in to.together]
        case Isolated():
            (here,) = destinations
            groups = [LaneGroup([here.each[producer % len(here.each)]])]
        case AllToOne():
            groups = [LaneGroup([routing.one_of(routing.one_of(destinations).each)])]
        case Partitioned():
            return _by_partition(routing, destinations, owners, edge)
        case _:
            assert_never(routing)
    if len(groups) == 1:
        only = groups[0]
        return lambda batch: ((only, batch),)
    return lambda batch: [(group, batch) for group in groups]


def _by_partition(
    routing: Partitioned, destinations: Sequence[Destination], owners: npt.NDArray[np.uint16], edge: str
) -> Route:
    columns, scheme = routing.columns, routing.scheme
    if scheme is None:
        partitions = partial(routing_partitions, columns=columns, edge=edge)
    elif routing.table is None:
        partitions = partial(scheme_partitions, columns=columns, scheme=scheme, unmatched=routing.unmatched, edge=edge)
    else:
        partitions = partial(table_partitions, columns=columns, scheme=scheme, edge=edge)
    if not len(owners):
        count = ROUTING_PARTITIONS if scheme is None else scheme.partition_count
        owners = (np.arange(count) % len(destinations)).astype(np.uint16)
    consumers = [len(to.each) for to in destinations]
    here = next((position for position, to in enumerate(destinations) if to.is_here), 0)
    return partitioned_route(
        [LaneGroup([lane]) for to in destinations for lane in to.each],
        _lane_of_partition(owners, consumers, routing.unmatched),
        partitions,
        sum(consumers[:here]),
    )


def _lane_of_partition(
    owners: npt.NDArray[np.uint16], consumers: Sequence[int], unmatched: UnmatchedRows
) -> npt.NDArray[np.uint16]:
    """Return the lane of each partition and, at the end, of the rows without one.

    The partitions of a destination are distributed over its consumers, of which ``consumers`` has the number, in turn.

    The number of lanes in place of a lane says that rows are dropped. Every member computes the same.
    """
    lanes = np.full(len(owners) + 1, sum(consumers), dtype=np.uint16)
    if unmatched is not UnmatchedRows.DROP:
        lanes[-1] = 0
    first_lane = 0
    for position, count in enumerate(consumers):
        mine = np.flatnonzero(owners == position)
        lanes[mine] = first_lane + np.arange(len(mine)) % count
        first_lane += count
    return lanes


def partitioned_route(
    groups: Sequence[LaneGroup],
    lane_of_partition: npt.NDArray[np.uint16],
    partitions: Callable[[pa.RecordBatch], npt.NDArray[np.int64]],
    lane_without_rows: int = 0,
) -> Route:
    """A route that sends each row to the lane of its partition.

    Args:
        groups: One for each lane.
        lane_of_partition: Index into ``groups`` for each routing partition, and a last one for rows of no partition
            (-1); the number of groups says that the rows are dropped.
        partitions: Computes the routing partition of each row.
        lane_without_rows: Where a batch without rows goes when none has gone anywhere yet: one consumer has to receive
            its columns, or the schema of an empty result would be lost.

    Returns:
        The route. A batch whose rows all belong to one lane is passed on as it is; otherwise those not dropped are
        copied once, in their order. Cost beside
        ``partitions``: 3 ns a row for two columns of integers and three lanes.
    """
    if len(groups) == 1 and not lane_of_partition.any():
        only = groups[0]
        return lambda batch: ((only, batch),)

    lane_of_partition = lane_of_partition.astype(np.uint8 if len(groups) < 1 << 8 else np.uint16)
    is_schema_known = False

    def route(batch: pa.RecordBatch) -> Iterable[tuple[LaneGroup, pa.RecordBatch]]:
        nonlocal is_schema_known
        was_known, is_schema_known = is_schema_known, True
        if not batch.num_rows:
            if not was_known:
                yield groups[lane_without_rows], batch
            return
        lanes = np.empty(batch.num_rows, dtype=lane_of_partition.dtype)
        for start in range(0, len(lanes), _BLOCK_ROWS):
            lane_of_partition.take(
                partitions(batch.slice(start, _BLOCK_ROWS)), out=lanes[start : start + _BLOCK_ROWS], mode="wrap"
            )
        for lane, rows in _rows_by_lane(lanes, len(groups)):
            yield groups[lane], batch if len(rows) == len(lanes) else _TAKE.call([batch, pa.array(rows)], _UNCHECKED)

    return route


def _rows_by_lane(lanes: npt.NDArray[np.uint8 | np.uint16], count: int) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """The lanes that have rows, and which."""
    if count <= _COMPARED_LANES_MAX:
        for lane in range(count):
            rows = np.flatnonzero(lanes == lane)
            if len(rows):
                yield lane, rows
        return
    order = np.argsort(lanes, kind="stable")
    ends = np.bincount(lanes, minlength=count).cumsum()
    for lane in range(count):
        start = int(ends[lane - 1]) if lane else 0
        if start < ends[lane]:
            yield lane, order[start : ends[lane]]
