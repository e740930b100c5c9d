"""A service of FastAPI over ``secateur.aio``: callers that hang up end their statements on every member.

Run it with ``python -m examples.fastapi_service``: it serves 60 callers at the same time, of which 40 hang up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import httpx
import uvicorn
from fastapi import FastAPI, HTTPException, Request

import secateur
import secateur.aio

__all__ = ["app", "main"]

T = TypeVar("T")

CUSTOMERS = 1_000
LOOK_S = 0.05


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One connection for all requests of this process."""
    async with await secateur.aio.connect(app.state.address) as conn:
        app.state.conn = conn
        yield


app = FastAPI(lifespan=lifespan)
app.state.address = None  # SECATEUR_ADDRESS, with SECATEUR_TOKEN


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do some work until its caller hangs up, which Starlette does not notice by itself."""
    running = asyncio.create_task(work)
    try:
        while not (await asyncio.wait([running], timeout=LOOK_S))[0]:
            if await request.is_disconnected():
                raise HTTPException(499, "the caller has gone")
    finally:
        running.cancel()
    return running.result()


@app.get("/customers/{customer}")
async def spent(customer: int) -> dict[str, Any]:
    """What a customer has spent: one look-up at one member, too short to watch its caller."""
    cur = await app.state.conn.execute("SELECT spent FROM customers WHERE id = ?", [customer])
    row = await cur.fetchone()
    if row is None:
        raise HTTPException(404, "there is no such customer")
    return {"customer": customer, "spent": row[0]}


@app.get("/pairs")
async def pairs(request: Request) -> dict[str, Any]:
    """A report that takes far too long."""

    async def counted() -> int:
        cur = await app.state.conn.execute(
            "SELECT count(*) FROM customers a, range(1000000000) b(i) WHERE a.id * b.i % 7 = 3"
        )
        ((count,),) = await cur.fetchall()
        found: int = count
        return found

    return {"pairs": await while_there(request, counted())}


async def _called(port: int) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:

        async def gone() -> None:
            with suppress(httpx.TimeoutException):
                await client.get("/pairs", timeout=0.5)

        async def answered(caller: int) -> list[float]:
            answers = [await client.get(f"/customers/{customer}") for customer in range(caller, 300, 20)]
            return [answer.json()["spent"] for answer in answers]

        reports = [asyncio.create_task(gone()) for _ in range(40)]
        answers = await asyncio.gather(*(answered(caller) for caller in range(20)))
        found = [spent for some in answers for spent in some]
        print(f"{len(found)} answers to 20 callers: {sum(found):.1f} was spent")
        await asyncio.gather(*reports)
        print(f"{len(reports)} callers have hung up")


def main() -> None:
    """Start a cluster and the service, and call it."""
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE customers (id BIGINT PRIMARY KEY, spent DOUBLE) PARTITION BY HASH (id) PARTITIONS 16"
        )
        conn.table("customers").load({"id": list(range(CUSTOMERS)), "spent": [id / 2 for id in range(CUSTOMERS)]})
        app.state.address = cluster.address
        asyncio.run(_served(conn))


def _reports(conn: secateur.Connection) -> int:
    running = "SELECT count(*) FROM secateur.running_statements WHERE statement LIKE ?"
    ((count,),) = conn.execute(running, ["%range(1000000000)%"]).fetchall()
    found: int = count
    return found


async def _served(conn: secateur.Connection) -> None:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.01)
    (listener,) = server.servers
    await _called(listener.sockets[0].getsockname()[1])
    while await asyncio.to_thread(_reports, conn):  # noqa: ASYNC110 - members tell nobody
        await asyncio.sleep(LOOK_S)
    print("no member computes a report any more")
    server.should_exit = True
    await serving


if __name__ == "__main__":
    main()
