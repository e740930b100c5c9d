"""Tables and a loop for the tests that run jobs on several members in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pyarrow as pa
import pytest

import small_jobs
from secateur.partitioning.tables import TableDef

T = TypeVar("T")
Run = Callable[[Awaitable[T]], T]


@pytest.fixture
def run() -> Callable[[Awaitable[Any]], Any]:
    """Runs a coroutine on a loop of its own, and fails instead of hanging. No task may be left behind."""

    def run_to_end(main: Awaitable[Any]) -> Any:
        async def guarded() -> Any:
            result = await asyncio.wait_for(main, 20)
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            assert not left, left
            return result

        return asyncio.run(guarded())

    return run_to_end


@pytest.fixture
def orders() -> TableDef:
    return small_jobs.orders_table()


@pytest.fixture
def table_of() -> Callable[[pa.Table, str], TableDef]:
    return small_jobs.table_of


@pytest.fixture
def order_rows() -> pa.Table:
    """200 customers with 5 orders each; amounts are whole, so that their sums are exact in any order."""
    customers = [f"C{i // 5}" for i in range(1000)]
    return pa.table(
        {
            "customer": customers,
            "number": pa.array([i % 5 for i in range(1000)], pa.int64()),
            "amount": [float(i) for i in range(1000)],
        }
    )
