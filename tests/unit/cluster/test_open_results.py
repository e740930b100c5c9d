"""Results that are read in parts: who has one open, what it holds, and when it is over."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from secateur.cluster.member import GRANT_BYTES_MAX, OpenResults, granted
from secateur.engine.kernels import CompleteResult
from secateur.errors import LimitExceededError, ProtocolError
from secateur.wire import PeerInfo, Reply, Request, decode_table

PEER, OTHER = (PeerInfo(number, "there", "test", False) for number in (1, 2))
ROWS = pa.table({"a": list(range(1000))})
PART = ROWS.nbytes // 4


class TableRows(CompleteResult):
    """Rows that are there, as a stream."""

    async def take(self, bytes_wanted: int) -> pa.Table:  # type: ignore[override]
        return super().take(bytes_wanted)


def request(op: str = "result_next", peer: PeerInfo = PEER, **args: Any) -> Request:
    return Request(op, args, memoryview(b""), peer)


def numbers(reply: Reply) -> list[int]:
    return list(decode_table(memoryview(reply.payload)).column("a").to_pylist())  # type: ignore[arg-type]


def opened(held_bytes_max: int = 1 << 30) -> OpenResults:
    results = OpenResults(held_bytes_max)
    results.connected(PEER)
    results.connected(OTHER)
    return results


def test_a_result_is_read_to_its_end() -> None:
    async def scenario() -> None:
        results = opened()
        reply = await results.open(PEER, TableRows(ROWS), PART, {"execution": "local"})
        assert reply.header == {"execution": "local", "rows": 250, "more": True}
        seen = numbers(reply)
        assert (results.count, results.held_bytes) == (1, 3 * PART)
        while reply.header["more"]:
            reply = await results.next(request(grant=PART))
            seen += numbers(reply)
        assert seen == list(range(1000))
        assert (results.count, results.held_bytes) == (0, 0)
        with pytest.raises(ProtocolError, match="has no result of which more could be read"):
            await results.next(request(grant=PART))

    asyncio.run(scenario())


def test_what_fits_is_one_answer() -> None:
    results = opened()
    reply = asyncio.run(results.open(PEER, TableRows(ROWS), ROWS.nbytes, {}))
    assert (reply.header, results.count) == ({"rows": 1000}, 0)


def test_a_connection_has_one_open_result_and_takes_it_with_it() -> None:
    async def scenario() -> None:
        results = opened()
        for peer in (PEER, OTHER, PEER):
            await results.open(peer, TableRows(ROWS), PART, {})
        assert results.count == 2
        results.gone(PEER)
        assert results.count == 1
        results.close(OTHER)
        results.close(OTHER)
        assert results.count == 0
        stream = TableRows(ROWS)
        with pytest.raises(ProtocolError, match="is gone"):
            await results.open(PEER, stream, PART, {})
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
        await results.open(PEER, TableRows(ROWS), PART, {})
        with pytest.raises(
            LimitExceededError, match="results that are being read hold 6,000 bytes already; all of them may take 8,000"
        ):
            await results.open(OTHER, TableRows(ROWS), PART, {})
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


@pytest.mark.parametrize(("grant", "bytes_"), [(None, None), (5, 5), (0, 1), (1 << 60, GRANT_BYTES_MAX)])
def test_grants_are_bounded(grant: int | None, bytes_: int | None) -> None:
    assert granted(request(grant=grant)) == bytes_


def test_a_grant_is_a_number() -> None:
    with pytest.raises(ProtocolError, match="as a number of bytes, and got str"):
        granted(request("execute", grant="much"))
