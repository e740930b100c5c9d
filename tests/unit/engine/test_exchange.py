"""The two ends of an edge between members: order, window, end, and messages that are wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from secateur.dag import EdgeConfig
from secateur.engine import Scheduler
from secateur.engine.exchange import (
    ExchangeLink,
    ExchangeReceiver,
    ExchangeSender,
    Inbox,
    RemoteLane,
    SharedEncoder,
    encode_batches,
)
from secateur.errors import Error, ProtocolError
from secateur.protocol import CreditRows, ExchangeRows, Notice, RowsPiece
from secateur.wire import Payload, decode_table, encode_table

ROW_BYTES = 8


def batch(*xs: int) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(xs, pa.int64())})


class Ends:
    """A sender on m1 and a receiver on m2, with the messages between them in hand."""

    def __init__(
        self,
        config: EdgeConfig,
        *,
        producers: int = 1,
        consumers: int = 1,
        frame_bytes_max: int = 1 << 20,
        post: Callable[[str, Notice, Payload], None] | None = None,
    ) -> None:
        self.to_receiver: list[tuple[ExchangeRows, Payload]] = []
        self.to_sender: list[CreditRows] = []
        self.failures: list[Error] = []
        self.ended = 0
        self.inboxes = [Inbox(config, 1) for _ in range(consumers)]
        self.sender = ExchangeSender(
            ExchangeLink("j", "m1", 3, "m2", config, post or self._posted),
            producer_count=producers,
            frame_bytes_max=frame_bytes_max,
            scheduler=Scheduler(asyncio.get_running_loop(), 1.0),
            fail=self.failures.append,
            ended=self._sender_ended,
        )
        self.receiver = ExchangeReceiver(ExchangeLink("j", "m2", 3, "m1", config, self._posted), self.inboxes)

    def _posted(self, member: str, notice: Notice, payload: Payload) -> None:
        if isinstance(notice, ExchangeRows):
            assert member == "m2"
            self.to_receiver.append((notice, payload))
        else:
            assert isinstance(notice, CreditRows)
            assert (member, payload) == ("m1", b"")
            self.to_sender.append(notice)

    def _sender_ended(self) -> None:
        self.ended += 1

    def carry(self) -> None:
        for notice, payload in self.to_receiver:
            self.receiver.receive(notice, payload)
        self.to_receiver.clear()

    def credit(self) -> None:
        for message in self.to_sender:
            self.sender.credit(message.size)
        self.to_sender.clear()

    def put(self, *xs: int, consumers: tuple[int, ...] = (0,)) -> None:
        RemoteLane(self.sender, consumers).put(batch(*xs))

    def taken(self, consumer: int = 0) -> list[list[int]]:
        found = []
        while (got := self.inboxes[consumer].take()) is not None:
            found.append(got.column("x").to_pylist())
        return found


def on_loop(test: Callable[[], None]) -> None:
    async def main() -> None:
        test()

    asyncio.run(main())


def test_batches_of_one_turn_share_a_frame_and_the_end_rides_along() -> None:
    def test() -> None:
        ends = Ends(EdgeConfig(), consumers=2)
        ends.put(1, 2)
        ends.put(3, consumers=(1,))
        ends.put(4, consumers=(0, 1))
        ends.sender.producer_done()
        ends.sender.run()
        ((message, _),) = ends.to_receiver
        assert message.pieces == (RowsPiece((0,), 2, 16), RowsPiece((1,), 1, 8), RowsPiece((0, 1), 1, 8))
        assert message.is_last
        ends.carry()
        assert (ends.taken(0), ends.taken(1)) == ([[1, 2], [4]], [[3], [4]])
        assert all(inbox.is_drained for inbox in ends.inboxes)
        assert (ends.sender.is_ended, ends.ended) == (True, 1)

    on_loop(test)


def test_an_edge_without_rows_ends_with_one_empty_message() -> None:
    def test() -> None:
        ends = Ends(EdgeConfig(), producers=2)
        ends.sender.producer_done()
        ends.sender.run()
        assert ends.to_receiver == []
        ends.sender.producer_done()
        ends.sender.run()
        ends.sender.run()
        assert [(m.pieces, m.is_last, bytes(payload)) for m, payload in ends.to_receiver] == [((), True, b"")]

    on_loop(test)


def test_a_batch_without_rows_carries_its_schema() -> None:
    def test() -> None:
        ends = Ends(EdgeConfig())
        ends.put()
        ends.sender.run()
        ends.carry()
        got = ends.inboxes[0].take()
        assert got is not None
        assert (got.num_rows, got.schema) == (0, batch().schema)

    on_loop(test)


def test_batches_of_different_schemas_travel_apart() -> None:
    def test() -> None:
        ends = Ends(EdgeConfig())
        ends.put(1)
        RemoteLane(ends.sender, (0,)).put(pa.record_batch({"y": ["a"]}))
        ends.sender.run()
        assert len(ends.to_receiver) == 2
        ends.carry()
        names = [got.schema.names for got in (ends.inboxes[0].take(), ends.inboxes[0].take()) if got is not None]
        assert names == [["x"], ["y"]]

    on_loop(test)


def test_frames_are_cut_at_their_bound() -> None:
    def test() -> None:
        ends = Ends(EdgeConfig(), frame_bytes_max=3 * ROW_BYTES)
        for x in range(7):
            ends.put(x)
        ends.sender.run()
        assert [sum(piece.rows for piece in m.pieces) for m, _ in ends.to_receiver] == [3, 3, 1]

    on_loop(test)


def test_the_window_stops_the_sender_until_rows_are_taken() -> None:
    def test() -> None:
        ends = Ends(EdgeConfig(queue_batches_max=100, window_bytes_max=4 * ROW_BYTES))
        for x in range(10):
            ends.put(x)
        ends.sender.run()
        ends.carry()
        ends.sender.run()
        assert ends.to_receiver == []
        assert ends.sender.unacknowledged_bytes == 4 * ROW_BYTES
        assert ends.inboxes[0].take() is not None  # a quarter of the window: worth a word
        ends.credit()
        ends.sender.run()
        assert [m.pieces for m, _ in ends.to_receiver] == [(RowsPiece((0,), 1, 8),)]

    on_loop(test)


@pytest.mark.parametrize("window", [1, ROW_BYTES, 3 * ROW_BYTES, 5 * ROW_BYTES, 1000])
@pytest.mark.parametrize("rows", [1, 3, 40])
def test_every_window_lets_every_batch_through_in_order(window: int, rows: int) -> None:
    """Whatever the sizes, alternating sends and takes must never get stuck."""

    def test() -> None:
        ends = Ends(EdgeConfig(queue_batches_max=1000, window_bytes_max=window))
        sent = [list(range(i, i + 1 + i % rows)) for i in range(50)]
        for xs in sent:
            ends.put(*xs)
        ends.sender.producer_done()
        received: list[list[int]] = []
        for _ in range(200):
            ends.sender.run()
            assert ends.sender.unacknowledged_bytes <= max(window, max(1, window // 4) + rows * ROW_BYTES)
            ends.carry()
            received += ends.taken()
            ends.credit()
        assert received == sent
        assert ends.inboxes[0].is_drained

    on_loop(test)


def test_a_small_exchange_sends_no_acknowledgement() -> None:
    def test() -> None:
        ends = Ends(EdgeConfig())
        ends.put(1, 2, 3)
        ends.sender.run()
        ends.carry()
        ends.taken()
        assert ends.to_sender == []

    on_loop(test)


def test_the_sender_is_bounded_and_wakes_its_producer() -> None:
    class Bell:
        rings = 0

        def wake(self) -> None:
            self.rings += 1

    def test() -> None:
        ends, bell = Ends(EdgeConfig(queue_batches_max=2, window_bytes_max=ROW_BYTES)), Bell()
        ends.put(1)
        assert ends.sender.has_room
        ends.put(2)
        assert not ends.sender.has_room
        ends.sender.wait_for_room(bell)
        ends.sender.run()
        assert bell.rings == 1

    on_loop(test)


def exchange(payload: Payload | None = None, **changes: Any) -> tuple[ExchangeRows, Payload]:
    rows = encode_table(pa.Table.from_batches([batch(1, 2)])) if payload is None else payload
    return replace(ExchangeRows("j", "m1", 3, 0, (RowsPiece((0,), 2, 16),), False), **changes), rows


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        pytest.param([exchange(sequence=1)], "message 1 arrived where message 0 was expected", id="lost"),
        pytest.param([exchange(), exchange()], "message 0 arrived where message 1 was expected", id="repeated"),
        pytest.param(
            [exchange(is_last=True), exchange(sequence=1)], "where nothing more was expected", id="after the end"
        ),
        pytest.param(
            [exchange(pieces=(RowsPiece((0,), 3, 24),))],
            "the header names 3 rows, the payload has 2",
            id="wrong rows",
        ),
        pytest.param(
            [exchange(pieces=(RowsPiece((1,), 2, 16),))],
            r"for the consumers \(1,\), but 1 are here",
            id="wrong consumer",
        ),
        pytest.param([exchange(payload=b"garbage")], "Arrow IPC", id="garbage"),
    ],
)
def test_wrong_messages_are_a_protocol_error(messages: list[tuple[ExchangeRows, Payload]], reason: str) -> None:
    def test() -> None:
        ends = Ends(EdgeConfig())
        for message in messages[:-1]:
            ends.receiver.receive(*message)
        with pytest.raises(ProtocolError, match=reason):
            ends.receiver.receive(*messages[-1])

    on_loop(test)


def test_acknowledging_more_than_was_sent_is_a_protocol_error() -> None:
    def test() -> None:
        ends = Ends(EdgeConfig())
        with pytest.raises(ProtocolError, match="member m2 acknowledged 5 bytes of edge 3 more"):
            ends.sender.credit(5)

    on_loop(test)


def test_rows_that_cannot_be_written_fail_the_job() -> None:
    def test() -> None:
        ends = Ends(EdgeConfig(), post=_refuse)
        ends.put(1)
        ends.sender.run()
        assert [str(error) for error in ends.failures] == ["no"]

    def _refuse(member: str, notice: Notice, payload: Payload) -> None:
        raise ProtocolError("no")

    on_loop(test)


def test_nothing_is_acknowledged_after_the_end() -> None:
    """The sender may be gone by then."""

    def test() -> None:
        ends = Ends(EdgeConfig(window_bytes_max=1))
        ends.put(1)
        ends.sender.producer_done()
        ends.sender.run()
        ends.carry()
        assert ends.taken() == [[1]]
        assert ends.to_sender == []

    on_loop(test)


def test_a_broadcast_is_encoded_once_while_its_senders_agree() -> None:
    first, second, third = batch(1), batch(2), batch(3)
    encode = SharedEncoder()
    payload = encode([first, second])
    assert payload.tobytes() == encode_batches([first, second]).tobytes()
    assert encode([first, second]) is payload
    alone = encode([first])
    assert alone is not payload
    assert decode_table(alone).column("x").to_pylist() == [1]
    assert decode_table(encode([first, third])).column("x").to_pylist() == [1, 3]
    assert decode_table(encode([batch(1), third])).column("x").to_pylist() == [1, 3]
