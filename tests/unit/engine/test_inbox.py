"""The bounded queue in front of a processor."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.dag import EdgeConfig
from secateur.engine.exchange import Inbox


class Bell:
    def __init__(self) -> None:
        self.rings = 0

    def wake(self) -> None:
        self.rings += 1


class Ledger:
    def __init__(self) -> None:
        self.sizes: list[int] = []

    def taken(self, size: int) -> None:
        self.sizes.append(size)


def batch(rows: int = 1) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(range(rows), pa.int64())})


@pytest.mark.parametrize(
    ("config", "rows", "fits"),
    [
        pytest.param(EdgeConfig(queue_batches_max=3), 1, 3, id="batches"),
        pytest.param(EdgeConfig(queue_bytes_max=160), 10, 2, id="bytes"),
        pytest.param(EdgeConfig(queue_bytes_max=1), 10, 1, id="one batch larger than the bound"),
    ],
)
def test_room_is_bounded(config: EdgeConfig, rows: int, fits: int) -> None:
    inbox = Inbox(config, 1)
    count = 0
    while inbox.has_room:
        inbox.put(batch(rows))
        count += 1
    assert count == fits


def test_batches_come_out_in_order_and_by_reference() -> None:
    inbox = Inbox(EdgeConfig(), 1)
    first, second = batch(1), batch(2)
    inbox.put(first)
    inbox.deliver(second, 16, Ledger())
    assert inbox.take() is first
    assert inbox.take() is second
    assert inbox.take() is None


def test_a_waiting_producer_is_woken_once_when_there_is_room() -> None:
    inbox, producer = Inbox(EdgeConfig(queue_batches_max=2), 1), Bell()
    inbox.put(batch())
    inbox.put(batch())
    inbox.wait_for_room(producer)
    inbox.wait_for_room(producer)
    inbox.take()
    inbox.take()
    assert producer.rings == 1


def test_the_consumer_is_woken_by_batches_and_by_the_last_end() -> None:
    inbox, consumer = Inbox(EdgeConfig(), 2), Bell()
    inbox.consumer = consumer
    inbox.put(batch())
    inbox.deliver(batch(), 8, Ledger())
    assert consumer.rings == 2
    inbox.producer_done()
    assert consumer.rings == 2
    inbox.producer_done()
    assert consumer.rings == 3


def test_rows_from_afar_are_acknowledged_when_taken_and_do_not_fill_the_queue() -> None:
    inbox, ledger = Inbox(EdgeConfig(queue_batches_max=1), 1), Ledger()
    for size in (10, 20, 30):
        inbox.deliver(batch(), size, ledger)
    assert inbox.has_room
    inbox.take()
    inbox.take()
    assert ledger.sizes == [10, 20]


def test_drained_means_empty_and_ended() -> None:
    inbox = Inbox(EdgeConfig(), 1)
    inbox.put(batch())
    inbox.producer_done()
    assert not inbox.is_drained
    inbox.take()
    assert inbox.is_drained


def test_an_input_without_producers_is_drained_from_the_start() -> None:
    assert Inbox(EdgeConfig(), 0).is_drained
