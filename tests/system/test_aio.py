"""The client for asyncio: each call stands still for its task alone, and a task that is cancelled ends its work."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from asked_members import executions

import secateur
from secateur import aio
from secateur.aio.event_loop import LoopLock, LoopWaits
from secateur.cluster import Cluster
from secateur.connectors import collect, table_source
from secateur.errors import (
    DeadlineError,
    InterfaceError,
    JobCancelledError,
    ProgrammingError,
    UnknownTableError,
    UnreachableError,
)

ROWS = 20_000
RECURSION = "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r"
ENDLESS = "SELECT count(*) FROM range(1000000000000)"


@pytest.fixture(scope="module")
def filled() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=10.0) as running:
        with running.connect() as conn:
            conn.execute(
                "CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 8 BACKUPS 1"
                " WITH (change_feed = true)"
            )
            conn.table("t").load({"k": list(range(ROWS)), "v": [f"v{k}" for k in range(ROWS)]})
        yield running


@asynccontextmanager
async def connected(cluster: Cluster, **options: Any) -> AsyncIterator[aio.AsyncConnection]:
    async with await aio.connect(cluster.address, cluster.token, **options) as conn:
        yield conn


def in_loop(cluster: Cluster, work: Callable[[aio.AsyncConnection], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with asyncio.timeout(120), connected(cluster) as conn:
            return await work(conn)

    return asyncio.run(main())


async def value_of(conn: aio.AsyncConnection, key: int) -> str:
    row = await (await conn.execute("SELECT v FROM t WHERE k = ?", [key])).fetchone()
    assert row is not None
    value: str = row[0]
    return value


async def until(holds: Callable[[], Any], timeout_s: float = 30.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110 - members tell nobody
            await asyncio.sleep(0.005)


@pytest.mark.smoke
def test_a_cursor_has_what_that_of_a_thread_has(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> None:
        cur = await conn.execute("SELECT k, v FROM t WHERE k < 5 ORDER BY k")
        assert cur.description is not None
        assert [column[0] for column in cur.description] == ["k", "v"]
        assert (cur.rowcount, cur.rownumber) == (5, 0)
        assert cur.stats is not None
        assert await cur.fetchone() == (0, "v0")
        assert await cur.fetchmany(2) == [(1, "v1"), (2, "v2")]
        assert [row async for row in cur] == [(3, "v3"), (4, "v4")]
        assert await cur.fetchall() == []
        table = await (await cur.execute("SELECT k FROM t WHERE k IN (1, 2)")).fetch_arrow_table()
        assert sorted(table["k"].to_pylist()) == [1, 2]
        assert len(await (await cur.execute("SELECT k FROM t WHERE k < 3")).df()) == 3
        await cur.executemany("SELECT v FROM t WHERE k = ?", [[1], [2]])
        assert await cur.fetchall() == [("v1",)]
        assert await cur.nextset()
        assert await cur.fetchall() == [("v2",)]
        cur.close()
        with pytest.raises(InterfaceError, match="the cursor is closed"):
            await cur.execute("SELECT 1")
        assert repr(conn).startswith("<aio Connection secateur://")

    in_loop(filled, work)


def test_rows_that_come_in_parts_are_read_as_they_are_made(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> tuple[int, int]:
        wide = "SELECT a.k, repeat(a.v, 100) AS v FROM t a, range(20) r(n)"
        count = 0
        async for _ in await conn.execute(wide):
            count += 1
        async with await conn.execute(wide) as cur:  # and is not read to its end
            await cur.fetchmany(10)
        await until(lambda: executions(filled) == 0)
        table = await (await conn.execute(wide)).arrow()
        return count, table.num_rows

    assert in_loop(filled, work) == (20 * ROWS, 20 * ROWS)


@pytest.mark.smoke
def test_hundreds_of_statements_are_in_flight_on_one_connection(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> list[str]:
        async def change(key: int) -> None:
            await conn.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", [ROWS + key, f"v{ROWS + key}"])

        await asyncio.gather(*(change(key) for key in range(100)))
        found = await asyncio.gather(*(value_of(conn, key) for key in range(ROWS - 400, ROWS + 100)))
        await conn.execute("DELETE FROM t WHERE k >= ?", [ROWS])
        return found

    assert in_loop(filled, work) == [f"v{key}" for key in range(ROWS - 400, ROWS + 100)]


def test_the_loop_goes_on_while_statements_loads_and_jobs_are_under_way(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> float:
        longest = 0.0
        is_over = False

        async def beat() -> None:
            nonlocal longest
            while not is_over:
                begun = time.perf_counter()
                await asyncio.sleep(0.001)
                longest = max(longest, time.perf_counter() - begun)

        beating = asyncio.create_task(beat())
        with pytest.raises(DeadlineError):
            await conn.execute(ENDLESS, timeout=1.0)
        await conn.execute("CREATE TABLE beside (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 4")
        table = await conn.table("beside")

        def slowly() -> Iterator[pa.RecordBatch]:
            for start in range(0, 300, 100):
                time.sleep(0.5)
                keys = list(range(start, start + 100))
                yield pa.RecordBatch.from_pydict({"k": keys, "v": list(map(str, keys))})

        schema = pa.schema([("k", pa.int64()), ("v", pa.string())])
        assert await table.load(pa.RecordBatchReader.from_batches(schema, slowly())) == 300
        is_over = True
        await beating
        await conn.execute("DROP TABLE beside")
        return longest

    assert in_loop(filled, work) < 1.0, "something blocked the event loop"


def test_a_cancelled_task_ends_its_work_on_every_member(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> list[float]:
        ended_s = []
        for sql in (ENDLESS, RECURSION, f"SELECT v FROM t WHERE k = ({ENDLESS})"):
            running = asyncio.create_task(conn.execute(sql))
            await until(lambda: executions(filled) > 0)
            running.cancel()
            begun = time.perf_counter()
            with pytest.raises(asyncio.CancelledError):
                await running
            await until(lambda: executions(filled) == 0)
            ended_s.append(time.perf_counter() - begun)
            assert await value_of(conn, 7) == "v7"
        return ended_s

    assert max(in_loop(filled, work)) < 5.0


def test_a_result_whose_read_was_cancelled_does_not_look_read(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> None:
        cur = await conn.execute("SELECT range, repeat('x', 100) FROM range(8000000)")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await cur.fetch_arrow_table()
        for fetch in (cur.fetchone, cur.fetchmany, cur.fetchall, cur.fetch_arrow_table):
            with pytest.raises(JobCancelledError, match="CancelledError ended a wait for its rows"):
                await fetch()
        assert await (await cur.execute("SELECT 1")).fetchall() == [(1,)]

    in_loop(filled, work)


def test_time_outs_of_asyncio_and_of_the_call(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await conn.execute(ENDLESS)
        with pytest.raises(DeadlineError, match=r"timeout=0.2 seconds"):
            await conn.execute(ENDLESS, timeout=0.2)
        await conn.execute("SET statement_timeout = '200ms'")
        with pytest.raises(DeadlineError, match="statement_timeout"):
            await conn.execute(ENDLESS)
        await until(lambda: executions(filled) == 0)

    in_loop(filled, work)


def test_another_task_cancels_a_cursor_or_the_whole_connection(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> None:
        cur = conn.cursor()
        running = asyncio.create_task(cur.execute(ENDLESS))
        await until(lambda: executions(filled) > 0)
        cur.cancel()
        with pytest.raises(JobCancelledError, match=r"cursor.cancel\(\) was called"):
            await running
        both = [asyncio.create_task(conn.execute(ENDLESS)) for _ in range(2)]
        await until(lambda: executions(filled) > 1)
        conn.interrupt()
        found = await asyncio.gather(*both, return_exceptions=True)
        assert [type(one) for one in found] == [JobCancelledError] * 2
        assert await value_of(conn, 3) == "v3"

    in_loop(filled, work)


def test_many_cancelled_statements_leave_nothing(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> None:
        async def cancelled(key: int) -> None:
            running = asyncio.create_task(value_of(conn, key))
            for _ in range(key % 7):  # at another place of the call each time
                await asyncio.sleep(0)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        await asyncio.gather(*(cancelled(key) for key in range(50)))
        gc.collect()
        files = psutil.Process().num_fds()
        for _ in range(20):
            await asyncio.gather(*(cancelled(key) for key in range(50)))
        assert await asyncio.gather(*(value_of(conn, key) for key in range(50))) == [f"v{key}" for key in range(50)]
        assert not conn._blocking._session.running
        gc.collect()
        await until(lambda: psutil.Process().num_fds() <= files + 100)
        await until(lambda: executions(filled) == 0)

    in_loop(filled, work)


def test_keys_are_read_and_written_without_sql(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> None:
        await conn.execute("CREATE TABLE own (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 4")
        table = await conn.table("OWN")
        assert (table.name, table.primary_key, table.schema.names) == ("own", ("k",), ["k", "v"])
        await table.put((1, "a"))
        await table.put_many([{"k": 2, "v": "b"}, {"k": 3, "v": "c"}])
        assert await table.get(1) == (1, "a")
        assert await table.get(k=2) == {"k": 2, "v": "b"}
        assert await table.get_many([3, 4]) == [(3, "c"), None]
        assert await table.delete(1)
        assert await table.delete_many([2, 3, 4]) == 2
        assert (await table.statistics()).rows == 0
        await conn.execute("DROP TABLE own")
        with pytest.raises(UnknownTableError):
            await table.get(1)

    in_loop(filled, work)


def test_a_file_is_copied_in_and_out(filled: Cluster, tmp_path: Path) -> None:
    async def work(conn: aio.AsyncConnection) -> int:
        path = tmp_path / "t.parquet"
        written = await conn.execute(f"COPY (SELECT * FROM t WHERE k < 50) TO '{path}'")
        assert written.rowcount == 50
        await conn.execute("CREATE TABLE copied (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 4")
        read = await conn.execute(f"COPY copied FROM '{path}'")
        await conn.execute("DROP TABLE copied")
        return read.rowcount

    assert in_loop(filled, work) == 50


def test_a_load_whose_task_is_cancelled_is_not_made(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> None:
        await conn.execute("CREATE TABLE half (k BIGINT PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 4")
        begun, ended = threading.Event(), threading.Event()

        def endless() -> Iterator[pa.RecordBatch]:
            try:
                for start in range(10**6):
                    begun.set()
                    time.sleep(0.01)
                    yield pa.RecordBatch.from_pydict({"k": [start]})
            finally:
                ended.set()

        table = await conn.table("half")
        reader = pa.RecordBatchReader.from_batches(pa.schema([("k", pa.int64())]), endless())
        loading = asyncio.create_task(table.load(reader))
        await until(begun.is_set)
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading
        assert await (await conn.execute("SELECT count(*) FROM half")).fetchone() == (0,)
        await conn.execute("DROP TABLE half")

    in_loop(filled, work)


def test_changes_are_followed(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> list[tuple[int, str]]:
        changes = await conn.changes("t", follow=True)

        async def first() -> list[dict[str, Any]]:
            async for batch in changes:
                return batch.to_pylist()
            return []

        following = asyncio.create_task(first())
        await conn.execute("UPDATE t SET v = 'new' WHERE k = 11")
        found = await following
        await conn.execute("UPDATE t SET v = 'v11' WHERE k = 11")
        assert str(changes.position)
        return [(change["k"], change["v"]) for change in found]

    assert in_loop(filled, work) == [(11, "v11"), (11, "new")]


def test_a_job_is_submitted_and_waited_for(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> None:
        dag = secateur.DAG()
        dag.new_vertex("read", table_source("t", keys=[{"k": key} for key in range(10)]))
        dag.new_vertex("result", collect())
        dag.edge(secateur.between("read", "result").distributed())
        assert "read" in str(await conn.plan(dag))
        job = await conn.submit(dag)
        result = await job.result()
        assert result.num_rows == 10
        assert (await job.info()).job_id == job.job_id
        assert await job.status() is secateur.JobStatus.COMPLETED
        assert (await (await conn.job(job.job_id)).metrics()) != []
        assert job.job_id in [info.job_id for info in await conn.jobs()]

    in_loop(filled, work)


def test_errors_are_those_of_a_thread_and_leave_the_connection_usable(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> None:
        with pytest.raises(ProgrammingError, match="expected SELECT"):
            await conn.execute("SELEC 1")
        with pytest.raises(UnknownTableError):
            await conn.table("none")
        assert "partitioning key (k): (5)" in str(await conn.explain("SELECT v FROM t WHERE k = 5"))
        assert await value_of(conn, 5) == "v5"
        await conn.close()
        assert conn.closed
        with pytest.raises(InterfaceError, match="the connection is closed"):
            await conn.execute("SELECT 1")

    in_loop(filled, work)


def test_statements_under_way_end_when_their_connection_is_closed(filled: Cluster) -> None:
    async def work(conn: aio.AsyncConnection) -> None:
        running = [asyncio.create_task(conn.execute(ENDLESS)) for _ in range(3)]
        await until(lambda: executions(filled) >= 3)
        await conn.close()
        found = await asyncio.gather(*running, return_exceptions=True)
        assert [type(one) for one in found] == [InterfaceError] * 3
        await until(lambda: executions(filled) == 0)

    in_loop(filled, work)


def test_a_wrong_address_is_told(filled: Cluster) -> None:
    async def main() -> None:
        with pytest.raises(UnreachableError, match="no process answers"):
            await aio.connect("secateur://127.0.0.1:1", connect_timeout_s=0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await aio.connect("secateur://127.0.0.1:1", connect_timeout_s=30)

    asyncio.run(main())


def test_a_connection_belongs_to_its_event_loop(filled: Cluster) -> None:
    conn = asyncio.run(aio.connect(filled.address, filled.token))
    with pytest.raises(InterfaceError, match="belongs to another event loop"):
        asyncio.run(conn.execute("SELECT 1"))
    conn._blocking.close()


def test_statements_go_on_when_a_member_is_killed() -> None:
    with secateur.start(members=3, runtime="embedded", member_silence_s=1.0) as mortal, mortal.connect() as conn:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 8 BACKUPS 1")
        conn.table("t").load({"k": list(range(100)), "v": [f"v{k}" for k in range(100)]})

        async def work(conn: aio.AsyncConnection) -> int:
            is_killed = False
            reads_after = 0

            async def read(first: int) -> None:
                nonlocal reads_after
                seen = 0
                while seen < 20:
                    for key in range(first, 100, 8):
                        assert await value_of(conn, key) == f"v{key}"
                    seen += is_killed
                    reads_after += is_killed

            reading = [asyncio.create_task(read(first)) for first in range(8)]
            await asyncio.sleep(0.1)
            await asyncio.to_thread(mortal.kill_member, "m2")
            is_killed = True
            await asyncio.gather(*reading)
            return reads_after

        assert in_loop(mortal, work) >= 160


def test_over_tls(tls: secateur.Tls) -> None:
    with secateur.start(members=2, runtime="embedded", token="secret", tls=tls) as secured:

        async def main() -> None:
            async with connected(secured, tls=secateur.Tls(ca=tls.ca)) as conn:
                await conn.execute(
                    "CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 4"
                )
                table = await conn.table("t")
                await table.load({"k": list(range(5000)), "v": ["é" * 500] * 5000})
                assert [len(v) for v in await asyncio.gather(*(value_of(conn, key) for key in range(40)))] == [500] * 40
                rows = await (await conn.execute("SELECT * FROM t")).fetchall()
                assert len(rows) == 5000
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await conn.execute(ENDLESS)

        asyncio.run(main())


def test_a_call_has_the_context_of_its_task() -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")

    async def main() -> list[str]:
        waits = LoopWaits(asyncio.get_running_loop())

        async def of(name: str) -> str:
            tenant.set(name)
            return await waits.run(lambda: (waits.sleep(0.001), tenant.get())[1])

        return await asyncio.gather(*(asyncio.create_task(of(f"C{number}")) for number in range(5)))

    assert asyncio.run(main()) == [f"C{number}" for number in range(5)]


def test_a_lock_goes_to_the_next_call_also_when_one_gives_up() -> None:
    async def main() -> list[int]:
        waits = LoopWaits(asyncio.get_running_loop())
        lock = LoopLock(asyncio.get_running_loop())
        had: list[int] = []

        def hold(number: int) -> None:
            with lock:
                had.append(number)
                waits.sleep(0.005)

        tasks = [asyncio.create_task(waits.run(hold, number)) for number in range(6)]
        await asyncio.sleep(0.002)
        tasks[1].cancel()
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(hold, 9)  # a thread beside may have it too
        return had

    assert asyncio.run(main()) == [0, 2, 4, 5, 9]


@pytest.mark.parametrize("turns", range(6))
def test_a_call_that_is_cancelled_as_it_connects_leaves_no_socket_open(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        begun = asyncio.Event()
        made: list[socket.socket] = []
        connect_socket = loop.sock_connect

        async def connecting(connected: socket.socket, address: Any) -> None:
            made.append(connected)
            begun.set()
            await connect_socket(connected, address)

        monkeypatch.setattr(loop, "sock_connect", connecting)
        waits = LoopWaits(loop)
        with socket.create_server(("127.0.0.1", 0)) as server:
            host, port = server.getsockname()
            call = asyncio.create_task(waits.run(waits.connect, host, port, 10.0))
            await begun.wait()
            for _ in range(turns):
                await asyncio.sleep(0)
            if call.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await call
            else:
                call.result().close()
        (connected,) = made
        assert connected.fileno() == -1

    asyncio.run(run())


def test_what_is_missing_is_named() -> None:
    without = "import sys; sys.modules['greenlet'] = None; import secateur; secateur.aio.connect"
    ended = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=False)
    assert 'secateur.aio needs greenlet: pip install "secateur[aio]"' in ended.stderr
