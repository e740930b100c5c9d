"""Results that are read in parts: who has one open, what it holds, and when it is over."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from secateur.cluster.member import GRANT_BYTES_MAX, OpenResults, within_bounds
from secateur.engine.kernels import CompleteResult
from secateur.errors import LimitExceededError, ProtocolError
from secateur.protocol import Executed, NextRows, Operation
from secateur.wire import PeerInfo, Reply, Request, decode_table

PEER, OTHER = (PeerInfo(number, "there", "test", False) for number in (1, 2))
ROWS = pa.table({"a": list(range(1000))})
PART = ROWS.nbytes // 4


class TableRows(CompleteResult):
    """Rows that are there, as a stream."""

    async def take(self, bytes_wanted: int) -> pa.Table:  # type: ignore[override]
        return super().take(bytes_wanted)


NEXT = Request(Operation.NEXT_ROWS, NextRows(PART), memoryview(b""), PEER)
SAID = Executed("local", 1, 8, 7, 0)


def numbers(reply: Reply[Any]) -> list[int]:
    return list(decode_table(memoryview(reply.payload)).column("a").to_pylist())  # type: ignore[arg-type]


def opened(held_bytes_max: int = 1 << 30) -> OpenResults:
    results = OpenResults(held_bytes_max)
    results.connected(PEER)
    results.connected(OTHER)
    return results


def test_a_result_is_read_to_its_end() -> None:
    async def scenario() -> None:
        results = opened()
        reply = await results.open(PEER, TableRows(ROWS), PART, SAID)
        assert reply.message == replace(SAID, rows=250, has_more=True)
        seen = numbers(reply)
        assert (results.count, results.held_bytes) == (1, 3 * PART)
        part: Reply[Any] = reply
        while part.message.has_more:
            part = await results.next(NEXT)
            seen += numbers(part)
        assert seen == list(range(1000))
        assert (results.count, results.held_bytes) == (0, 0)
        with pytest.raises(ProtocolError, match="has no result of which more could be read"):
            await results.next(NEXT)

    asyncio.run(scenario())


def test_what_fits_is_one_answer() -> None:
    results = opened()
    reply = asyncio.run(results.open(PEER, TableRows(ROWS), ROWS.nbytes, SAID))
    assert (reply.message, results.count) == (replace(SAID, rows=1000), 0)


def test_a_connection_has_one_open_result_and_takes_it_with_it() -> None:
    async def scenario() -> None:
        results = opened()
        for peer in (PEER, OTHER, PEER):
            await results.open(peer, TableRows(ROWS), PART, SAID)
        assert results.count == 2
        results.gone(PEER)
        assert results.count == 1
        results.close(OTHER)
        results.close(OTHER)
        assert results.count == 0
        stream = TableRows(ROWS)
        with pytest.raises(ProtocolError, match="requested this result is closed"):
            await results.open(PEER, stream, PART, SAID)
        assert (stream.is_done, results.count) == (True, 0)

    asyncio.run(scenario())


def test_what_is_done_for_a_connection_ends_with_it() -> None:
    async def scenario() -> None:
        results, begun = opened(), asyncio.Event()

        async def work() -> None:
            with results.running(PEER):
                begun.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await begun.wait()
        assert results.count == 1
        results.gone(PEER)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert results.count == 0

    asyncio.run(scenario())


def test_results_that_are_held_whole_have_a_bound_together() -> None:
    async def scenario() -> None:
        results = opened(ROWS.nbytes)
        await results.open(PEER, TableRows(ROWS), PART, SAID)
        with pytest.raises(
            LimitExceededError, match="results that are being read hold 6,000 bytes already; all of them may take 8,000"
        ):
            await results.open(OTHER, TableRows(ROWS), PART, SAID)
        assert results.count == 1
        results.close_all()
        assert results.count == 0
        assert results.checked(ROWS) is ROWS
        with pytest.raises(
            LimitExceededError,
            match="takes 16,000 bytes; all of them may take 8,000, the result_bytes_max of this member",
        ):
            results.checked(pa.concat_tables([ROWS, ROWS]))

    asyncio.run(scenario())


@pytest.mark.parametrize(("grant", "bytes_"), [(5, 5), (0, 1), (1 << 60, GRANT_BYTES_MAX)])
def test_grants_are_bounded(grant: int, bytes_: int) -> None:
    assert within_bounds(grant) == bytes_
