"""What is kept of streams."""

from __future__ import annotations

from secateur.cluster.controller import StreamBatches
from secateur.protocol import PublishedBatch, StreamBatch


def entry(table_id: int, stream: str, batch: int = 0) -> PublishedBatch:
    return PublishedBatch(table_id, StreamBatch(stream, "q", batch), f"{table_id} {stream} {batch}")


def test_a_batch_takes_the_place_of_the_one_before() -> None:
    batches = StreamBatches().begun(entry(1, "a"), {1, 2}).begun(entry(2, "a"), {1, 2}).published("1 a 0")
    later = batches.begun(entry(1, "a", 1), {1, 2})
    assert later.entries == (entry(2, "a"), entry(1, "a", 1))
    found = batches.find(1, "a")
    assert found is not None
    assert found.is_published
    assert later.find(1, "b") is None


def test_batches_of_dropped_tables_are_forgotten() -> None:
    batches = StreamBatches().begun(entry(1, "a"), {1}).begun(entry(2, "a"), {2})
    assert batches.entries == (entry(2, "a"),)


def test_the_stream_that_rested_longest_goes_first() -> None:
    batches = StreamBatches()
    for number in range(1001):
        batches = batches.begun(entry(1, f"s{number}"), {1})
        batches = batches.begun(entry(1, "s0", number + 1), {1})
    assert len(batches.entries) == 1000
    assert batches.find(1, "s0") is not None
    assert batches.find(1, "s1") is None
    assert batches.find(1, "s2") is not None
