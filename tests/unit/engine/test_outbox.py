"""The two outboxes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
import pytest

from secateur.dag import EdgeConfig
from secateur.engine.exchange import DirectOutbox, EdgeWriter, Inbox, LaneGroup, WaitingOutbox
from secateur.errors import DagError, JobCancelledError


class Bell:
    def __init__(self) -> None:
        self.execution_mode = threading.Event()

    def wake(self) -> None:
        self.execution_mode.set()


def batch(x: int) -> pa.RecordBatch:
    return pa.record_batch({"x": [x]})


def edges(count: int, room: int = 1) -> tuple[list[EdgeWriter], list[Inbox]]:
    inboxes = [Inbox(EdgeConfig(queue_batches_max=room), 1) for _ in range(count)]

    def route(inbox: Inbox) -> Callable[[pa.RecordBatch], list[tuple[LaneGroup, pa.RecordBatch]]]:
        group = LaneGroup([inbox])
        return lambda b: [(group, b)]

    return [EdgeWriter(route(inbox), [inbox]) for inbox in inboxes], inboxes


def values(inbox: Inbox) -> list[int]:
    found = []
    while (got := inbox.take()) is not None:
        found.append(got.column("x")[0].as_py())
    return found


def test_direct_outbox_refuses_all_edges_while_one_is_blocked() -> None:
    writers, inboxes = edges(2)
    outbox = DirectOutbox(writers, "v")
    assert outbox.offer(batch(1))
    assert outbox.offer_to(0, batch(2))  # held back: the queue has room for one
    assert not outbox.offer(batch(3))
    assert not outbox.offer_to(0, batch(3))
    assert outbox.offer_to(1, batch(4))
    assert outbox.accepted == 4  # one of the three offers went to both edges
    assert [values(inbox) for inbox in inboxes] == [[1], [1]]
    assert outbox.flush(Bell())
    assert [values(inbox) for inbox in inboxes] == [[2], [4]]


def test_an_outbox_without_edges_takes_everything() -> None:
    assert DirectOutbox([], "v").offer(batch(1))
    assert WaitingOutbox([], "v", lambda: None).offer(batch(1))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda w: DirectOutbox(w, "v"), id="direct"),
        pytest.param(lambda w: WaitingOutbox(w, "v", lambda: None), id="waiting"),
    ],
)
def test_what_is_no_batch_or_no_edge_is_refused(make: Callable[[list[EdgeWriter]], DirectOutbox]) -> None:
    writers, _ = edges(1)
    outbox = make(writers)
    with pytest.raises(DagError, match=r"vertex 'v' offered a Table; .* table.to_batches\(\)"):
        outbox.offer(pa.table({"x": [1]}))
    with pytest.raises(DagError, match="vertex 'v' offered a batch to output 1, but it has 1 outbound edges"):
        outbox.offer_to(1, batch(1))


def test_waiting_outbox_waits_for_room_and_keeps_the_order() -> None:
    (writer,), (inbox,) = edges(1)
    bell = Bell()
    outbox = WaitingOutbox([writer], "v", bell.wake)
    total = 100

    def produce() -> None:
        for x in range(total):
            assert outbox.offer(batch(x))

    thread = threading.Thread(target=produce)
    thread.start()
    found: list[int] = []
    while len(found) < total:
        assert bell.execution_mode.wait(10)
        bell.execution_mode.clear()
        outbox.flush(bell)
        assert len(inbox) <= 1
        new = values(inbox)
        found += new
        if new:
            bell.execution_mode.set()
    thread.join(10)
    assert found == list(range(total))
    assert outbox.flush(bell)
    assert outbox.is_clear


def test_the_end_of_the_job_frees_a_thread_that_waits() -> None:
    writers, _ = edges(1)
    full = threading.Event()
    outbox = WaitingOutbox(writers, "v", full.set)
    raised: list[Exception] = []

    def produce() -> None:
        try:
            while True:
                outbox.offer(batch(1))
        except JobCancelledError as error:
            raised.append(error)

    thread = threading.Thread(target=produce)
    thread.start()
    assert full.wait(10)
    outbox.clear()
    thread.join(10)
    assert [str(error) for error in raised] == [
        "vertex 'v': the job has ended while the processor was offering a batch"
    ]
