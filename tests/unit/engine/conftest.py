"""Tables, clusters in memory and a loop for the tests of the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from secateur.partitioning.build import build_scheme
from secateur.partitioning.scheme import HashComponent
from secateur.partitioning.table import Column, TableDef
from secateur.partitioning.types import parse_type

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
    """16 partitions by customer."""
    types = {"customer": parse_type("VARCHAR"), "number": parse_type("BIGINT"), "amount": parse_type("DOUBLE")}
    scheme = build_scheme(hashes=[HashComponent(("customer",), 16)], types=types, primary_key=("customer", "number"), table="orders")
    columns = tuple(Column(name, sql_type, nullable=name == "amount") for name, sql_type in types.items())
    return TableDef("orders", 1, columns, ("customer", "number"), scheme, backups=0)


@pytest.fixture
def order_rows() -> pa.Table:
    """200 customers with 5 orders each; amounts are whole, so that their sums are exact in any order."""
    customers = [f"C{i // 5}" for i in range(1000)]
    return pa.table({"customer": customers, "number": pa.array([i % 5 for i in range(1000)], pa.int64()), "amount": [float(i) for i in range(1000)]})
