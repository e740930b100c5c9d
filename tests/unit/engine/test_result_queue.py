from __future__ import annotations

import asyncio

import pyarrow as pa

from secateur.engine.runtime import ResultQueue

BATCH = pa.record_batch({"a": list(range(10))})


def columns(batches: list[pa.RecordBatch]) -> list[int]:
    return pa.Table.from_batches(batches).column("a").to_pylist()


def test_it_refuses_while_it_is_full_and_keeps_the_order() -> None:
    queue = ResultQueue(2 * BATCH.nbytes)
    queue.expect("result")
    batches = [pa.record_batch({"a": list(range(start, start + 10))}) for start in (0, 10, 20)]
    assert [queue.add("result", batch) for batch in batches] == [True, True, False]
    assert (queue.rows, queue.bytes) == (20, 2 * BATCH.nbytes)
    assert columns(queue.take(1)) == list(range(10))
    assert queue.add("result", batches[2])
    assert columns(queue.take(1 << 20)) == list(range(10, 30))
    assert (queue.rows, queue.bytes) == (0, 0)
    assert queue.take(1) == []
    assert queue.tables() == {}


def test_the_schema_is_known_from_the_first_batch_on() -> None:
    queue = ResultQueue(100)
    assert queue.schema is None
    queue.add("result", BATCH.slice(0, 0))
    assert queue.schema == BATCH.schema
    assert (queue.rows, queue.take(1)) == (0, [])


def test_whoever_waits_is_woken_by_rows_a_full_queue_or_the_end() -> None:
    async def scenario() -> list[int]:
        queue, is_over, seen = ResultQueue(2 * BATCH.nbytes), False, []

        async def take(wanted: int) -> None:
            await queue.wait(wanted, lambda: is_over)
            seen.append(queue.rows)

        for wanted, rows in ((BATCH.nbytes, 1), (1 << 30, 2)):
            waiting = asyncio.create_task(take(wanted))
            await asyncio.sleep(0)
            for _ in range(rows):
                queue.add("result", BATCH)
            await waiting
            queue.take(1 << 30)
        waiting = asyncio.create_task(take(1))
        await asyncio.sleep(0)
        is_over = True
        queue.wake()
        await waiting
        return seen

    assert asyncio.run(scenario()) == [10, 20, 0]


def test_a_closed_queue_lets_the_sink_go_on_and_keeps_nothing() -> None:
    queue = ResultQueue(1)
    queue.add("result", BATCH)
    queue.close()
    assert queue.add("result", BATCH)
    assert (queue.rows, queue.bytes) == (0, 0)
