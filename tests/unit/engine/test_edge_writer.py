"""Routing of batches to lanes, and what happens when a lane is full."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from secateur.dag import EdgeConfig
from secateur.engine.exchange import EdgeWriter, Inbox, LaneGroup, partitioned_route


class Bell:
    def __init__(self) -> None:
        self.rings = 0

    def wake(self) -> None:
        self.rings += 1


def lanes(count: int, room: int = 2) -> list[Inbox]:
    return [Inbox(EdgeConfig(queue_batches_max=room), 1) for _ in range(count)]


def values(inbox: Inbox) -> list[list[int]]:
    found = []
    while (batch := inbox.take()) is not None:
        found.append(batch.column("x").to_pylist())
    return found


def batch(*xs: int) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(xs, pa.int64())})


def test_a_group_deals_in_turn_and_passes_over_the_full() -> None:
    inboxes = lanes(3, room=2)
    inboxes[1].put(batch(-1))
    inboxes[1].put(batch(-2))
    group = LaneGroup(inboxes, first=1)
    assert [group.place(batch(i)) for i in range(5)] == [True, True, True, True, False]
    assert [values(inbox) for inbox in inboxes] == [[[1], [3]], [[-1], [-2]], [[0], [2]]]


def test_what_finds_no_room_is_held_back_and_placed_later() -> None:
    (inbox,), producer = lanes(1, room=1), Bell()
    group = LaneGroup([inbox])
    writer = EdgeWriter(lambda b: [(group, b)], [inbox])
    writer.write(batch(1))
    assert writer.is_clear
    writer.write(batch(2))
    assert not writer.is_clear
    assert not writer.flush(producer)
    assert values(inbox) == [[1]]
    assert producer.rings == 1
    assert writer.flush(producer)
    assert values(inbox) == [[2]]
    assert (writer.batches, writer.rows, writer.bytes) == (2, 2, 16)


def test_broadcast_keeps_its_order_on_every_lane_when_one_is_full() -> None:
    inboxes, producer = lanes(2, room=1), Bell()
    groups = [LaneGroup([inbox]) for inbox in inboxes]
    writer = EdgeWriter(lambda b: [(g, b) for g in groups], inboxes)
    writer.write(batch(1))
    assert values(inboxes[0]) == [[1]]
    writer.write(batch(2))  # lane 0 takes it, lane 1 is still full
    assert not writer.is_clear
    assert values(inboxes[1]) == [[1]]
    assert writer.flush(producer)
    assert [values(inbox) for inbox in inboxes] == [[[2]], [[2]]]


def test_finish_ends_every_lane_also_those_that_got_nothing() -> None:
    inboxes = lanes(3)
    writer = EdgeWriter(lambda b: [(LaneGroup([inboxes[0]]), b)], inboxes)
    writer.write(batch(1))
    writer.finish()
    assert [inbox.is_drained for inbox in inboxes] == [False, True, True]


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        pytest.param([0, 1, 2, 3, 0], [[[10, 12, 14]], [[11, 13]]], id="rows keep their order inside a lane"),
        pytest.param([1, 3, 1, 3, 1], [[], [[10, 11, 12, 13, 14]]], id="all rows to one lane"),
    ],
)
def test_partitioned_rows_go_to_the_lane_of_their_partition(
    partitions: list[int], expected: list[list[list[int]]]
) -> None:
    inboxes = lanes(2)
    route = partitioned_route(
        [LaneGroup([inbox]) for inbox in inboxes],
        np.array([0, 1, 0, 1], dtype=np.uint16),
        lambda b: np.array(partitions),
    )
    writer = EdgeWriter(route, inboxes)
    writer.write(batch(10, 11, 12, 13, 14))
    assert [values(inbox) for inbox in inboxes] == expected


@pytest.mark.parametrize(
    ("lane_count", "of_partition", "partitions", "expected"),
    [
        pytest.param(2, [0, 1, 2, 2], [0, 1, 2, -1, 0], [[[10, 14]], [[11]]], id="partition and stray dropped"),
        pytest.param(2, [0, 1, 2, 2], [2, 2, -1, 2, 2], [[], []], id="all dropped"),
        pytest.param(2, [0, 1, 2, 0], [0, 1, 2, -1, 0], [[[10, 13, 14]], [[11]]], id="stray kept"),
        pytest.param(1, [0, 1, 1], [0, 1, -1, 0, 1], [[[10, 13]]], id="one lane"),
        pytest.param(9, [0, 8, 9, 9], [1, 2, -1, 0, 1], [[[13]], *[[]] * 7, [[10, 14]]], id="many lanes"),
    ],
)
def test_rows_of_no_lane_are_dropped(
    lane_count: int, of_partition: list[int], partitions: list[int], expected: list[list[list[int]]]
) -> None:
    inboxes = lanes(lane_count)
    route = partitioned_route(
        [LaneGroup([inbox]) for inbox in inboxes],
        np.array(of_partition, dtype=np.uint16),
        lambda b: np.array(partitions),
    )
    EdgeWriter(route, inboxes).write(batch(10, 11, 12, 13, 14))
    assert [values(inbox) for inbox in inboxes] == expected


@pytest.mark.parametrize("lane_count", [1, 2])
def test_a_batch_that_is_not_split_is_passed_by_reference(lane_count: int) -> None:
    inboxes = lanes(lane_count)
    route = partitioned_route(
        [LaneGroup([inbox]) for inbox in inboxes], np.zeros(4, dtype=np.uint16), lambda b: np.array([2, 3])
    )
    sent = batch(1, 2)
    EdgeWriter(route, inboxes).write(sent)
    assert inboxes[0].take() is sent


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param([[], []], [[], [[]]], id="the first tells the columns, and the next tells nothing new"),
        pytest.param([[1], []], [[[1]], []], id="rows have told them"),
        pytest.param([[], [1]], [[[1]], [[]]], id="before the first rows"),
    ],
)
def test_a_batch_without_rows_has_no_partition_but_tells_its_columns_once(
    written: list[list[int]], expected: list[list[list[int]]]
) -> None:
    inboxes = lanes(2)
    groups = [LaneGroup([inbox]) for inbox in inboxes]
    route = partitioned_route(
        groups, np.array([0, 1], dtype=np.uint16), lambda b: np.zeros(b.num_rows, dtype=np.int64), lane_without_rows=1
    )
    writer = EdgeWriter(route, inboxes)
    for rows in written:
        writer.write(batch(*rows))
    assert [values(inbox) for inbox in inboxes] == expected
