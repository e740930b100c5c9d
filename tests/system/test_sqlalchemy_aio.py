"""SQLAlchemy's asyncio extension over the dialect."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import BigInteger, func, inspect, select, text
from sqlalchemy.dialects import registry
from sqlalchemy.exc import DatabaseError
from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import secateur
from secateur.cluster import Cluster

registry.register("secateur.aio", "secateur.sqlalchemy_dialect.aio_dialect", "SecateurAioDialect")  # of this checkout


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    __table_args__ = {"secateur_partition_by": "HASH (id) PARTITIONS 8"}  # noqa: RUF012 - as SQLAlchemy writes it

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    amount: Mapped[float]


@pytest.fixture(scope="module")
def alone() -> Iterator[Cluster]:
    with secateur.start(members=2, runtime="embedded") as running:
        yield running


@asynccontextmanager
async def engine_of(cluster: Cluster) -> AsyncIterator[AsyncEngine]:
    place = cluster.address.removeprefix("secateur://")
    engine = create_async_engine(f"secateur+aio://{place}/?token={cluster.token}")
    async with engine.begin() as conn:
        await conn.run_sync(Base.metadata.drop_all)
        await conn.run_sync(Base.metadata.create_all)
    async with async_sessionmaker(engine)() as session:
        session.add_all([Order(id=number, amount=number / 2) for number in range(20)])
        await session.commit()
    try:
        yield engine
    finally:
        await engine.dispose()


def in_loop(cluster: Cluster, work: Callable[[AsyncEngine], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with asyncio.timeout(60), engine_of(cluster) as engine:
            return await work(engine)

    return asyncio.run(main())


@pytest.mark.smoke
def test_sessions_statements_and_reflection(alone: Cluster) -> None:
    async def work(engine: AsyncEngine) -> None:
        async with async_sessionmaker(engine)() as session:
            order = (await session.scalars(select(Order).where(Order.id == 7))).one()
            order.amount = 100.0
            await session.commit()
        async with engine.connect() as conn:
            assert await conn.scalar(select(func.sum(Order.amount))) == sum(range(20)) / 2 + 96.5
            assert await conn.run_sync(lambda blocking: inspect(blocking).get_table_names()) == ["orders"]
            with pytest.raises(DatabaseError, match="does not exist"):
                await conn.execute(text("SELECT * FROM none"))

    in_loop(alone, work)


def test_tasks_share_an_engine_and_the_loop_goes_on(alone: Cluster) -> None:
    async def work(engine: AsyncEngine) -> None:
        async def amount(number: int) -> float:
            async with engine.connect() as conn:
                found: float = await conn.scalar(select(Order.amount).where(Order.id == number))
                return found

        async def endless() -> None:
            async with engine.connect() as conn:
                await conn.execute(text("SELECT count(*) FROM range(1000000000000)"))

        running = asyncio.create_task(endless())
        assert await asyncio.gather(*(amount(number) for number in range(20))) == [number / 2 for number in range(20)]
        assert not running.done()
        running.cancel()
        begun_s = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert time.monotonic() - begun_s < 5
        assert await amount(3) == 1.5

    in_loop(alone, work)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "SELECT * FROM orders WHERE false",
        "SELECT * FROM orders WHERE id = NULL",
        "DELETE FROM orders WHERE 1 = 0",
    ],
)
def test_what_the_client_answers_itself_has_been_awaited(alone: Cluster, statement: str) -> None:
    async def work(engine: AsyncEngine) -> None:
        async with engine.begin() as conn:
            for _ in range(3):  # the plan of the first one answers the others
                await conn.execute(text(statement))

    in_loop(alone, work)


def test_large_results_are_whole_or_streamed(alone: Cluster) -> None:
    async def work(engine: AsyncEngine) -> None:
        large = text("SELECT i, repeat('é', 100) AS v FROM range(100000) t(i)")
        async with engine.connect() as conn:
            rows = (await conn.execute(large)).all()  # outside of any greenlet
            assert (len(rows), len(rows[0].v)) == (100_000, 100)
            streamed = await conn.stream(large)
            assert sum([row.i async for row in streamed]) == sum(range(100_000))

    in_loop(alone, work)
